"""Budgets: what a unit may cost, written in comments or in a configuration; their syntax and their precedence."""
