"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .metrics import Figure


def table(lines: Sequence[Sequence[str]]) -> str:
    """A table of a head line and others, columns aligned."""
    clean = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    widths = [max(3, *(len(line[i]) for line in clean)) for i in range(len(clean[0]))]
    rows = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in clean
    ]
    return "\n".join([rows[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *rows[1:]])


def dropped(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Lines without the columns that are empty below the head."""
    kept = [i for i in range(len(lines[0])) if any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def plain(value: float) -> str:
    """A correlation or an error: three decimals."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share in per cent, without the sign."""
    return f"{100 * value:.1f}"


def factor(value: float) -> str:
    """A ratio: 4.5x, 110x."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def figure(found: Figure | None, form: Callable[[float], str] = plain) -> str:
    """A figure with its interval in brackets; empty for none."""
    if found is None:
        return ""
    ends = found.interval
    return form(found.value) + (f" ({form(ends[0])}–{form(ends[1])})" if ends is not None else "")
