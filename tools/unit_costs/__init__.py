"""Measures the unit costs in the tables of ``rlm_core/cost/library``, by the snippets next to them."""

from __future__ import annotations

from .entries import Entry, all_entries

__all__ = ["Entry", "all_entries"]
