"""Evaluates models: metrics by task, plain baselines, intervals by bootstrap over groups."""
