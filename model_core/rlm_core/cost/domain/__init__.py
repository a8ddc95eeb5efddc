"""The domain of the analysis: quantities in sizes, values, the meter that adds up costs, and the state."""
