"""Shared by tuning of students and full models: options, the result, its entry in the card, the output directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from rlm_core.errors import DataError
from rlm_core.files import partial_path, remove_abandoned
from rlm_core.folders import remove_tree
from rlm_core.inference.card import read_model_card

from .data import TeamRows
from .judging import TuningResult

FEWEST_ROWS = 200
_MOST_PROJECT_GROUPS = 20
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of tuning.

    Attributes:
        name: of the new model.
        keep: original data sets, against forgetting.
        fewest: with fewer rows, only an offset and a slope are fitted.
        threads: of PyTorch; 0 for automatic.
    """

    name: str = "tuned"
    keep: tuple[Path, ...] = ()
    fewest: int = FEWEST_ROWS
    threads: int = 0


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The results by task; ``model`` is the id of the new model, None where nothing improved and none was written."""

    results: tuple[TuningResult, ...]
    model: str | None
    refused: str | None


def card_entry(
    model_id: str, data: Sequence[Path], team: TeamRows, kept: Sequence[TuningResult], options: Options
) -> dict[str, Any]:
    """The entry in the card of a model that was tuned from ``model_id``."""
    rows = team.corpus.rows
    entry: dict[str, Any] = {
        "from": model_id,
        "date": date.today().isoformat(),
        "data": [path.name for path in data],
        "rows": len(rows),
        "groups": len(np.unique(rows.group)),
        "families": sorted(set(rows.family.tolist()))[:_MOST_PROJECT_GROUPS],
        "original_data": [path.name for path in options.keep],
        "slices": {result.key: result.to_json() for result in kept},
    }
    if team.machine is not None:
        entry["calls_measured_on"] = {"device": team.machine.device, **team.machine.workload}
    return entry


@dataclass(frozen=True, slots=True)
class OutputDirectory:
    """A directory to write a model into, and the path that it moves to when it is complete."""

    directory: Path
    out: Path

    def commit(self) -> str:
        """Move the complete model to its path and return its id."""
        model_id = read_model_card(self.directory).model_id
        if self.out.is_dir():
            self.out.rmdir()  # it was empty at the start
        self.directory.rename(self.out)
        return model_id


def check_free(out: Path) -> None:
    """Check that a path does not exist or is an empty directory.

    Raises:
        DataError: it holds something.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: already exists; give another path, or remove it")


@contextmanager
def output_directory(out: Path) -> Iterator[OutputDirectory]:
    """An empty directory next to ``out``; it is removed when the block ends without a commit.

    Raises:
        DataError: it cannot be written.
    """
    partial = partial_path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(out)
        partial.mkdir()
        yield OutputDirectory(partial, out)
    except OSError as error:
        where = error.filename or out
        raise DataError(f"{where}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        remove_tree(partial)
