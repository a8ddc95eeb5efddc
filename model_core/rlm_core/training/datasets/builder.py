"""What all data sets from label files share: reading the labels, choosing splits, counting what is left out.

In: a ``.jsonl`` or ``.jsonl.gz`` file, one JSON object per label. Out: rows of :mod:`.schema` and a report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.files import read_json_lines

from .schema import split_of

Progress = Callable[[int, int], None]
_EXAMPLES = 5  # names kept for each reason


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The rows and distinct units of a data set, and what was left out: counts and some names by reason."""

    rows: int
    units: int
    left_out: dict[str, int]
    examples: dict[str, list[str]]

    def lines(self) -> list[str]:
        """What was left out, one line per reason, the most frequent first."""
        by_count = sorted(self.left_out.items(), key=lambda item: -item[1])
        return [
            f"left out {count:,}: {reason}; for example {', '.join(self.examples[reason][:3])}"
            for reason, count in by_count
        ]


class RowBuilder(ABC):
    """Makes the rows of one data set; after iterating :meth:`rows`, :meth:`report` says what was left out.

    Args:
        split: the split of all rows; ``auto`` decides by group.
    """

    def __init__(self, split: str) -> None:
        self._split = split
        self._rows = self._units = 0
        self._left_out: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = defaultdict(list)

    @abstractmethod
    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows; ``progress`` receives the number of labels that are done and of all labels."""

    def report(self) -> BuildReport:
        """What was kept and what was left out."""
        return BuildReport(self._rows, self._units, dict(self._left_out), dict(self._examples))

    def _split_of(self, group: str) -> str:
        return split_of(group) if self._split == "auto" else self._split

    def _leave_out(self, reason: str, example: str, rows: int = 1) -> None:
        self._left_out[reason] += rows
        if len(self._examples[reason]) < _EXAMPLES:
            self._examples[reason].append(example)


def read_labels(path: Path, fields: Collection[str], kind: str) -> list[dict[str, Any]]:
    """The rows of a file of ``kind`` labels, each with all ``fields``.

    Raises:
        DataError: the file cannot be read, a line is not JSON, or a row lacks a field.
    """
    rows: list[dict[str, Any]] = []
    for where, row in read_json_lines(path):
        missing = sorted(set(fields) - set(row)) if isinstance(row, dict) else ["fields"]
        if missing:
            raise DataError(f"{where}: {missing[0]!r} is missing; is this a file of {kind} labels?")
        rows.append(row)
    return rows
