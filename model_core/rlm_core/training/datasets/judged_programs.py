"""Labels of online judges + git repositories -> rows of basis ``program``.

A judge's labels are JSON Lines with one accepted solution each: the repository and blob of its text, its problem, and
what the judge reported for it. :data:`LABELS` describes the labels of each judge. A group is a problem; problems that
share a text, apart from comments and spacing, are one group. The date of a label counts as the judge's.

A run time of at most one step of the judge's clock says no more than that: its row has the step as its value, which is
the floor of the task (:func:`rlm_core.training.corpus.floor_of`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.queries.judges import JUDGES
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES

from .builder import Progress, RepositoryRowBuilder, read_labels
from .splits import merge_groups

_COMMON = frozenset({"repo", "blob", "path", "language", "date"})
# The runtimes that a label's `variant` may name; other variants are versions of a compiler, which queries do not name.
_RUNTIMES = frozenset({"cpython", "pypy"})


@dataclass(frozen=True, slots=True)
class JudgeLabels:
    """How the labels of one judge are read.

    ``judge`` is an id of :data:`rlm_core.queries.judges.JUDGES`, ``problem`` the field with the problem's name, and
    ``figures`` give the field of each metric and what turns it into SI units.
    """

    judge: str
    problem: str
    figures: Mapping[str, tuple[str, float]]

    @property
    def fields(self) -> frozenset[str]:
        """The fields that every label must have."""
        return _COMMON | {self.problem} | {field for field, _ in self.figures.values()}


# By kind of data set. LeetCode shows megabytes of 10^6 bytes, BOJ kilobytes of 1,024.
LABELS: Mapping[str, JudgeLabels] = {
    "leethub": JudgeLabels("leetcode", "slug", {"latency": ("runtime_ms", 1e-3), "memory": ("memory_mb", 1e6)}),
    "boj": JudgeLabels("boj", "problem", {"latency": ("time_ms", 1e-3), "memory": ("memory_kb", 1024.0)}),
    "atcoder": JudgeLabels("atcoder", "problem", {"latency": ("time_ms", 1e-3)}),
}


class JudgedProgramBuilder(RepositoryRowBuilder):
    """Rows of solutions that a judge has run, read from repositories in a source cache.

    Args:
        kind: a key of :data:`LABELS`.
        labels: the file of labels.
        cache: the source cache, see :mod:`.cache`.
        split: the split of all rows; ``auto`` decides by group.
        download: whether repositories that the cache lacks are cloned.
        languages: the languages to keep; None keeps all.

    Raises:
        DataError: the file cannot be read, or has labels of another kind.
    """

    def __init__(
        self,
        kind: str,
        labels: Path,
        cache: Path,
        split: str = "auto",
        *,
        download: bool = True,
        languages: frozenset[str] | None = None,
    ) -> None:
        super().__init__(split, cache, download=download)
        self._kind, self._format = kind, LABELS[kind]
        rows = read_labels(labels, self._format.fields, JUDGES[self._format.judge].title)
        self._labels = [row for row in rows if languages is None or row["language"] in languages]

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, repository by repository."""
        solutions = list(self._solutions(progress))
        judge, problem = JUDGES[self._format.judge], self._format.problem
        keys = (
            (
                hashlib.sha256(f"{label['language']}\0{canonical(text, label['language'])}".encode()).digest(),
                str(label[problem]),
            )
            for label, text in solutions
        )
        groups = merge_groups(keys)
        for label, text in solutions:
            self._units += 1
            group = f"{judge.id}/{groups[str(label[problem])]}"
            workload = {"judge": judge.id, "date": label["date"]}
            runtime = label.get("variant")
            if runtime in _RUNTIMES:
                workload["runtime"] = runtime
            for metric, (field, unit) in self._format.figures.items():
                self._rows += 1
                yield {
                    "id": f"{self._kind}/{label['blob']}/{metric}",
                    "text": text,
                    "callees": [],
                    "language": label["language"],
                    "basis": "program",
                    "metric": metric,
                    "device": judge.id,
                    "workload": workload,
                    "value": max(label[field] * unit, judge.floor(metric)),
                    "group": group,
                    "family": group,
                    "held_out": "problem",
                    "split": self._split_of(group),
                    "repository": label["repo"],
                    "source": f"{label['repo']}@{label['blob']}:{label['path']}",
                }

    def _solutions(self, progress: Progress) -> Iterator[tuple[dict[str, Any], str]]:
        """The labels with their texts, the first label of each blob."""
        seen: set[tuple[str, str]] = set()
        for label, text in self._texts(self._labels, progress):
            where, place = (label["repo"], label["blob"]), f"{label['repo']}@{label['blob']}"
            if where in seen:
                self._leave_out("blob with a label already", place)
            elif not text.strip():
                self._leave_out("empty solution", place)
            elif label["language"] not in LANGUAGES:
                self._leave_out(f"unknown language {label['language']}", place)
            else:
                yield label, text
            seen.add(where)
