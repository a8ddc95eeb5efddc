"""Builds data sets from label files: reads the labels, chooses splits and counts what is left out.

In: a ``.jsonl`` or ``.jsonl.gz`` file, one JSON object per label. Out: rows of :mod:`.schema` and a report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.files import read_json_lines

from .cache import find_repository, read_blobs
from .splits import split_of

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
        """Return what was left out, one line per reason, the most frequent first."""
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
        """Return what was kept and what was left out."""
        return BuildReport(self._rows, self._units, dict(self._left_out), dict(self._examples))

    def _split_of(self, group: str) -> str:
        return split_of(group) if self._split == "auto" else self._split

    def _leave_out(self, reason: str, example: str, rows: int = 1) -> None:
        self._left_out[reason] += rows
        if len(self._examples[reason]) < _EXAMPLES:
            self._examples[reason].append(example)


class RepositoryRowBuilder(RowBuilder):
    """Makes rows from labels of files in git repositories, which are read by blob id from a source cache.

    Args:
        split: the split of all rows; ``auto`` decides by group.
        cache: the source cache, see :mod:`.cache`.
        download: whether repositories that the cache lacks are cloned.
    """

    def __init__(self, split: str, cache: Path, *, download: bool) -> None:
        super().__init__(split)
        self._cache, self._download = cache, download

    def _texts(self, labels: Sequence[dict[str, Any]], progress: Progress) -> Iterator[tuple[dict[str, Any], str]]:
        """The labels with the texts of their blobs, repository by repository; what cannot be read is counted.

        Raises:
            DataError: a repository's name is not of the form OWNER/NAME.
        """
        by_repository: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for label in labels:
            by_repository[label["repo"]][label["blob"]].append(label)
        done = 0
        for repository, by_blob in by_repository.items():
            count = sum(map(len, by_blob.values()))
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._leave_out("repository not found", repository, count)
            else:
                for blob, content in read_blobs(path, by_blob):
                    if content is None:
                        self._leave_out("blob not in the repository", f"{repository}@{blob}", len(by_blob[blob]))
                        continue
                    text = content.decode("utf-8", errors="replace")
                    yield from ((label, text) for label in by_blob[blob])
            done += count
            progress(done, len(labels))


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
