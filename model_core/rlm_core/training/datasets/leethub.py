"""LeetCode labels + git repositories -> rows of basis ``program``.

Solutions are read by blob id. A group is a problem; problems that share a text but for comments and spacing are one
group. Megabytes are taken as 10^6 bytes, the judge's date as that of the commit.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES

from .cache import find_repository, read_blobs
from .functions import Progress
from .labels import read_labels
from .schema import Report
from .splits import merge_groups, split_of

DEVICE = "leetcode"
_FIELDS = frozenset({"repo", "blob", "path", "slug", "language", "runtime_ms", "memory_mb", "date"})


class Builder:
    """Builds the rows of a label file; after iterating :meth:`rows`, :meth:`report` says what could not be had."""

    def __init__(
        self,
        labels: Path,
        cache: Path,
        split: str = "auto",
        *,
        download: bool = True,
        languages: frozenset[str] | None = None,
    ) -> None:
        rows = read_labels(labels, _FIELDS, "LeetCode")
        self._labels = [row for row in rows if languages is None or row["language"] in languages]
        self._cache, self._split, self._download = cache, split, download
        self._missing: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._rows = self._units = 0

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, repository by repository."""
        found = list(self._texts(progress))
        keys = (
            (
                hashlib.sha256(f"{label['language']}\0{canonical(text, label['language'])}".encode()).digest(),
                label["slug"],
            )
            for label, text in found
        )
        groups = merge_groups(keys)
        for label, text in found:
            self._units += 1
            group = f"leetcode/{groups[label['slug']]}"
            for metric, value in (("latency", label["runtime_ms"] * 1e-3), ("memory", label["memory_mb"] * 1e6)):
                self._rows += 1
                yield {
                    "id": f"leethub/{label['blob']}/{metric}",
                    "text": text,
                    "callees": [],
                    "language": label["language"],
                    "basis": "program",
                    "metric": metric,
                    "device": DEVICE,
                    "workload": {"judge": "leetcode", "date": label["date"]},
                    "value": value,
                    "group": group,
                    "family": group,
                    "held_out": "problem",
                    "split": split_of(group) if self._split == "auto" else self._split,
                    "source": f"{label['repo']}@{label['blob']}:{label['path']}",
                }

    def report(self) -> Report:
        """What was kept and what was left out, by reason."""
        return Report(self._rows, self._units, dict(self._missing), dict(self._examples))

    def _texts(self, progress: Progress) -> Iterator[tuple[dict[str, Any], str]]:
        by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            by_repository[label["repo"]].append(label)
        done = 0
        for repository, labels in by_repository.items():
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._count("repository not found", repository, len(labels))
            else:
                labels_of: dict[str, dict[str, Any]] = {}
                for label in labels:
                    if labels_of.setdefault(label["blob"], label) is not label:
                        self._count("blob with a label already", f"{repository}@{label['blob']}")
                for blob, content in read_blobs(path, labels_of):
                    label = labels_of[blob]
                    text = content.decode("utf-8", errors="replace") if content is not None else ""
                    if content is None:
                        self._count("blob not in the repository", f"{repository}@{blob}")
                    elif not text.strip():
                        self._count("empty solution", f"{repository}@{blob}")
                    elif label["language"] not in LANGUAGES:
                        self._count(f"unknown language {label['language']}", f"{repository}@{blob}")
                    else:
                        yield label, text
            done += len(labels)
            progress(done, len(self._labels))

    def _count(self, reason: str, example: str, rows: int = 1) -> None:
        self._missing[reason] += rows
        if len(self._examples[reason]) < 5:
            self._examples[reason].append(example)
