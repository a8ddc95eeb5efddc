"""What the analysis computes with: quantities in sizes, values, and the meter that adds up costs."""
