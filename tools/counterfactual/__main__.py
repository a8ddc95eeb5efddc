"""``python -m tools.counterfactual``: measured labels of our own functions -> a data set in Parquet."""

from __future__ import annotations

import argparse
from pathlib import Path

from rlm_core.training.datasets.schema import EDITS_SCHEMA
from rlm_core.training.datasets.splits import SPLITS

from tools.data_set import build

from .builder import HAND_WRITTEN_LABELS, LABELS, LITERAL_LABELS, CounterfactualBuilder


def main() -> None:
    """Build the data set."""
    parser = argparse.ArgumentParser(prog="python -m tools.counterfactual", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, nargs="+", help="label files (default: those in this folder)")
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--split", choices=["auto", *SPLITS], default="auto", help="split of all rows (default: auto)")
    arguments = parser.parse_args()
    labels = arguments.labels or (LABELS, LITERAL_LABELS, HAND_WRITTEN_LABELS)
    build(lambda: CounterfactualBuilder(labels, arguments.split), arguments.out, EDITS_SCHEMA)


if __name__ == "__main__":
    main()
