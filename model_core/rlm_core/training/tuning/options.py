"""What to tune with, what comes of it, and what the new card tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from .rows import TeamRows
from .verdict import Verdict

FEWEST_ROWS = 200
_SHOWN_FAMILIES = 20
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The name of the new model, original data sets against forgetting, rows below which only a level is fitted.

    ``threads`` are PyTorch's, 0 leaves the choice to it.
    """

    name: str = "tuned"
    keep: tuple[Path, ...] = ()
    fewest: int = FEWEST_ROWS
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came of it; ``model`` is the id of the new model, None where none was written because none was better."""

    verdicts: tuple[Verdict, ...]
    model: str | None
    refused: str | None


def told_of(
    model_id: str, data: Sequence[Path], team: TeamRows, kept: Sequence[Verdict], options: Options
) -> dict[str, Any]:
    """What the card of a model that was tuned from ``model_id`` tells of it."""
    rows = team.corpus.rows
    told: dict[str, Any] = {
        "from": model_id,
        "date": date.today().isoformat(),
        "data": [path.name for path in data],
        "rows": len(rows),
        "groups": len(np.unique(rows.group)),
        "families": sorted(set(rows.family.tolist()))[:_SHOWN_FAMILIES],
        "original_data": [path.name for path in options.keep],
        "slices": {verdict.key: verdict.to_json() for verdict in kept},
    }
    if team.own is not None:
        told["calls_measured_on"] = {"device": team.own.device, **team.own.workload}
    return told
