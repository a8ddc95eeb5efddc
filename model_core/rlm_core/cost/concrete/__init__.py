"""Follows Python texts at concrete values, statement by statement; what a value is belongs to its users."""
