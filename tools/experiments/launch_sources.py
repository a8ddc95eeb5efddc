"""The whole files of rows of kernels, read from the source cache that they were built from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlm_core.training.datasets.cache import find_repository, read_blobs


def source_files(rows: Iterable[dict[str, Any]], cache: Path) -> dict[str, str]:
    """The text of the file of each row by its id; the text of the row where the cache lacks the file."""
    wanted: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[str, str] = {}
    for row in rows:
        texts[row["id"]] = row["text"]
        repository, _, rest = row["source"].partition("@")
        wanted[repository][rest.partition(":")[0]].append(row)
    for repository, blobs in wanted.items():
        path = find_repository(cache, repository, download=False)
        for blob, content in read_blobs(path, blobs) if path is not None else ():
            if content is None:
                continue
            text = content.decode("utf-8", errors="replace")
            for row in blobs[blob]:
                name, _, line = row["source"].rpartition(":")
                texts[row["id"]] = (
                    json.loads(text.splitlines()[int(line) - 1])["code"] if name.endswith(".jsonl") else text
                )
    return texts
