"""LeetCode labels + git repositories -> rows of basis ``program``.

Solutions are read by blob id. A group is a problem; problems that share a text, apart from comments and spacing, are
one group. A megabyte is taken as 10^6 bytes, and the commit's date as the judge's.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES

from .builder import Progress, RowBuilder, read_labels
from .cache import find_repository, read_blobs
from .schema import merge_groups

DEVICE = "leetcode"
_FIELDS = frozenset({"repo", "blob", "path", "slug", "language", "runtime_ms", "memory_mb", "date"})


class LeetHubBuilder(RowBuilder):
    """Rows of LeetCode solutions, read from repositories in a source cache."""

    def __init__(
        self,
        labels: Path,
        cache: Path,
        split: str = "auto",
        *,
        download: bool = True,
        languages: frozenset[str] | None = None,
    ) -> None:
        super().__init__(split)
        rows = read_labels(labels, _FIELDS, "LeetCode")
        self._labels = [row for row in rows if languages is None or row["language"] in languages]
        self._cache, self._download = cache, download

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
                    "split": self._split_of(group),
                    "source": f"{label['repo']}@{label['blob']}:{label['path']}",
                }

    def _texts(self, progress: Progress) -> Iterator[tuple[dict[str, Any], str]]:
        by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            by_repository[label["repo"]].append(label)
        done = 0
        for repository, labels in by_repository.items():
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._leave_out("repository not found", repository, len(labels))
            else:
                labels_of: dict[str, dict[str, Any]] = {}
                for label in labels:
                    if labels_of.setdefault(label["blob"], label) is not label:
                        self._leave_out("blob with a label already", f"{repository}@{label['blob']}")
                for blob, content in read_blobs(path, labels_of):
                    label = labels_of[blob]
                    text = content.decode("utf-8", errors="replace") if content is not None else ""
                    if content is None:
                        self._leave_out("blob not in the repository", f"{repository}@{blob}")
                    elif not text.strip():
                        self._leave_out("empty solution", f"{repository}@{blob}")
                    elif label["language"] not in LANGUAGES:
                        self._leave_out(f"unknown language {label['language']}", f"{repository}@{blob}")
                    else:
                        yield label, text
            done += len(labels)
            progress(done, len(self._labels))
