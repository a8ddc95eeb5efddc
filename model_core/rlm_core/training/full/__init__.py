"""The full model: text encoders, numbers as tokens, exact quantiles."""
