"""The cost analysis: what a unit costs as far as its text says so, without running it."""
