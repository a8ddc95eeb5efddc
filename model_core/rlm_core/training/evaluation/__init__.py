"""How good a model is: metrics a slice, plain baselines beside it, intervals by bootstrap over groups."""
