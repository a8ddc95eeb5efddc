"""``python -m tools.nas``: label files of NAS benchmarks -> a data set in Parquet."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlm_core.training.datasets.splits import SPLITS

from tools.data_set import build

from .builder import NasBuilder


def main() -> None:
    """Build the data set."""
    parser = argparse.ArgumentParser(prog="python -m tools.nas", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, required=True, help="folder with the label files")
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--split", choices=["auto", *SPLITS], default="auto", help="split of all rows (default: auto)")
    arguments = parser.parse_args()
    build(lambda: NasBuilder(arguments.labels, arguments.split), arguments.out)


if __name__ == "__main__":
    main()
