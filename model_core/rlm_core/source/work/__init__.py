"""Work facts: what a Python unit costs as far as its text says so, without running it."""
