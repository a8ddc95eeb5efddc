"""Labels of growth + git repositories -> solutions with the class of their time and space, stated by their authors.

The rows have a separate schema: a class is a statement, not a measurement. Texts are stored without comments, which
contain the statement. A group is a problem, named as in the LeetHub data, so that both have the same splits.

| column | meaning |
|---|---|
| ``id`` | unique name of the row |
| ``text`` | canonical text of the solution (no comments) |
| ``language`` | as in :mod:`rlm_core.source.languages` |
| ``time``, ``space`` | a class of :data:`rlm_core.types.GROWTH_CLASSES`; null where the author states none |
| ``group``, ``split``, ``source`` | as in :mod:`.schema` |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES
from rlm_core.types import GROWTH_CLASSES

from .builder import Progress, RepositoryRowBuilder, read_labels
from .schema import open_parquet
from .splits import merge_groups

FORMAT = "rlm-growth-1"
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "text", "language", "time", "space", "group", "split", "source")],
    metadata={"format": FORMAT},
)
_FIELDS = frozenset(
    {"repo", "blob", "path", "slug", "language", "first_line", "last_line", "time_class", "space_class"}
)


class GrowthBuilder(RepositoryRowBuilder):
    """Rows of annotated solutions, read from repositories in a source cache."""

    def __init__(self, labels: Path, cache: Path, split: str = "auto", *, download: bool = True) -> None:
        super().__init__(split, cache, download=download)
        self._labels = read_labels(labels, _FIELDS, "growth")

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, repository by repository."""
        solutions = list(self._solutions(progress))
        keys = (
            (hashlib.sha256(f"{label['language']}\0{text}".encode()).digest(), label["slug"])
            for label, text in solutions
        )
        groups = merge_groups(keys)
        for label, text in solutions:
            self._rows += 1
            self._units += 1
            group = f"leetcode/{groups[label['slug']]}"
            lines = f"{label['first_line']}-{label['last_line']}"
            yield {
                "id": f"growth/{label['blob']}/{lines}",
                "text": text,
                "language": label["language"],
                "time": _growth_class(label["time_class"]),
                "space": _growth_class(label["space_class"]),
                "group": group,
                "split": self._split_of(group),
                "source": f"{label['repo']}@{label['blob']}:{label['path']}:{lines}",
            }

    def _solutions(self, progress: Progress) -> Iterator[tuple[dict[str, Any], str]]:
        """The labels with their canonical texts."""
        for label, content in self._texts(self._labels, progress):
            text = self._section(label, content.split("\n"), f"{label['repo']}@{label['blob']}")
            if text is not None:
                yield label, text

    def _section(self, label: dict[str, Any], lines: Sequence[str], where: str) -> str | None:
        """The canonical text of a label's lines; None, counted by its reason, where there is none."""
        if label["language"] not in LANGUAGES:
            self._leave_out(f"unknown language {label['language']}", where)
        elif text := canonical("\n".join(lines[label["first_line"] - 1 : label["last_line"]]), label["language"]):
            return text
        else:
            self._leave_out("empty solution", where)
        return None


def _growth_class(written: str | None) -> str | None:
    """``O(n log n)`` -> ``n log n``; what is not a known class is ``other``."""
    if written is None:
        return None
    name = written.removeprefix("O(").removesuffix(")")
    return name if name in GROWTH_CLASSES else "other"


def read_growth(path: Path, splits: Sequence[str] | None = None) -> pa.Table:
    """The rows of a growth data set; ``splits`` keeps only those.

    Raises:
        DataError: the file is missing or is not a data set of growth.
    """
    advice = "build it with `rlm-lsp data build growth`"
    table = open_parquet(path, FORMAT, "a data set of growth", advice).read()
    return table if splits is None else table.filter(pc.is_in(table["split"], pa.array(list(splits))))
