"""Budgets: what a unit may cost, as its source file and the project's configuration say it.

``syntax`` is their language, ``comments`` finds them above units, ``table`` reads the configuration, ``rules`` says
which one a prediction is held against.
"""

from .comments import FileComments, LocatedBudget, Malformed, UnitComments, read_comments
from .rules import Held, Rules, budget_of, budget_queries, rules_of
from .syntax import Budget, Mistake, Written, bound, parse, render
from .table import BudgetTable, BudgetTables, GlobBudget, read_budgets

__all__ = [
    "Budget",
    "BudgetTable",
    "BudgetTables",
    "FileComments",
    "GlobBudget",
    "Held",
    "LocatedBudget",
    "Malformed",
    "Mistake",
    "Rules",
    "UnitComments",
    "Written",
    "bound",
    "budget_of",
    "budget_queries",
    "parse",
    "read_budgets",
    "read_comments",
    "render",
    "rules_of",
]
