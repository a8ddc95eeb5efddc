"""What a query's workload says to the model: slice names and dates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from .errors import DataError


def slice_name(basis: str, language: str, metric: str) -> str:
    """The name of a slice of the data: one scale of outcomes, one row of weights."""
    return f"{basis}/{language}/{metric}"


def decimal_year(workload: Mapping[str, str]) -> float:
    """The judge's date as a decimal year, 0 when the workload has none.

    Raises:
        DataError: the date is not YYYY-MM-DD.
    """
    text = workload.get("date")
    if text is None:
        return 0.0
    try:
        day = date.fromisoformat(text)
    except (ValueError, TypeError):
        raise DataError(f"workload date {text!r} is not YYYY-MM-DD; write it like 2026-01-31") from None
    return day.year + (day.timetuple().tm_yday - 1) / 365.25
