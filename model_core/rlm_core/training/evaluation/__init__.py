"""How accurate and calibrated a model is: metrics by task, plain baselines, intervals by bootstrap over groups."""
