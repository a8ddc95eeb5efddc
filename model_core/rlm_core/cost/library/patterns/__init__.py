"""Regular expressions: what matching with Python's ``re`` may cost in the worst case, decided from the pattern."""
