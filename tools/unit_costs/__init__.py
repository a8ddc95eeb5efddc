"""Measures the table of unit costs in ``rlm_core/cost/library/unit_costs.json``.

Every module of this folder whose name ends in ``_entries`` has a tuple ``ENTRIES``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .entries import Entry


def all_entries() -> tuple[Entry, ...]:
    """The entries of all modules, by name."""
    modules = sorted(module.name for module in iter_modules(__path__) if module.name.endswith("_entries"))
    entries = [entry for name in modules for entry in import_module(f"{__name__}.{name}").ENTRIES]
    return tuple(sorted(entries, key=lambda entry: entry.name))
