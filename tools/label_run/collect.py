"""``python -m tools.label_run.collect``: the result files of a label run -> one file of labels.

    python -m tools.label_run.collect RESULTS --out model_core/labels/scaled.jsonl.gz

Only functions that were called with larger inputs are labels, in the order of packages by name, and of the results.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COPIED = ("package", "version", "repository")
_LEFT_OUT = ("why", "recursive", "latency_ok", "cpu")


def labels_of(path: Path) -> Iterator[dict[str, Any]]:
    """The labels of one package."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        head, *functions = map(json.loads, file)
    for row in functions:
        if row["points"]:
            kept = {name: value for name, value in row.items() if name not in _LEFT_OUT}
            yield {name: head[name] for name in _COPIED if name in head} | kept | {"device": head["processor"]}


def main() -> None:
    """Write the labels and count them."""
    parser = argparse.ArgumentParser(prog="python -m tools.label_run.collect", description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="folder of result files")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [row for path in sorted(options.results.glob("*.jsonl.gz")) for row in labels_of(path)]
    # Without the time of writing, so that equal labels are equal files.
    with options.out.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
        file.writelines(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
    packages = Counter(row["package"] for row in rows)
    print(f"{options.out}: {len(rows):,} functions of {len(packages)} packages")


if __name__ == "__main__":
    main()
