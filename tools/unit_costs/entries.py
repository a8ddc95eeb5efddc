"""One entry of the table of unit costs: a snippet, its preparation, and the sizes at which it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Snippet = str | Callable[[int], str]
SIZES = (10, 1_000, 100_000)


@dataclass(frozen=True, slots=True)
class Entry:
    """What ``name`` costs: seconds of ``snippet`` minus those of ``baseline``, divided by ``per``.

    ``setup`` runs once before, outside the clock; it and the snippets see ``n``. A snippet may be a function of ``n``
    that writes the text. ``unroll`` repeats a short snippet within one turn of the measuring loop. Law ``1`` is a fixed
    cost, measured at one size; other laws are those of :func:`rlm_core.cost.library.unit_costs.growth`.
    """

    name: str
    snippet: Snippet
    setup: str = ""
    law: str = "n"
    sizes: tuple[int, ...] = SIZES
    baseline: Snippet = "pass"
    unroll: int = 1
    per: float = 1.0

    def texts(self, n: int) -> tuple[str, str]:
        """Snippet and baseline at a size."""
        snippet = self.snippet if isinstance(self.snippet, str) else self.snippet(n)
        baseline = self.baseline if isinstance(self.baseline, str) else self.baseline(n)
        return snippet, baseline


def step(
    name: str,
    snippet: Snippet,
    setup: str = "",
    *,
    baseline: Snippet = "pass",
    unroll: int = 10,
    per: float = 1.0,
    n: int = 100,
) -> Entry:
    """An entry of fixed cost."""
    return Entry(name, snippet, setup, "1", (n,), baseline, unroll, per)
