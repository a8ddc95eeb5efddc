"""``python -m tools.counterfactual``: measured labels of generated functions -> a data set in Parquet.

By default the labels in this folder are used; ``--measure`` generates functions, measures them on this machine and
writes a new label file.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from rlm_core.training.datasets.schema import EDITS_SCHEMA, SPLITS

from tools.data_set import build

from .builder import LABELS, CounterfactualBuilder
from .generator import generate
from .measuring import measure


def main() -> None:
    """Build the data set or measure new labels."""
    parser = argparse.ArgumentParser(prog="python -m tools.counterfactual", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, default=LABELS, help="label file (default: the one in this folder)")
    parser.add_argument("--out", type=Path, help="Parquet file to write")
    parser.add_argument("--split", choices=["auto", *SPLITS], default="auto", help="split of all rows (default: auto)")
    parser.add_argument(
        "--measure", type=int, metavar="GROUPS", help="measure this many new groups into --labels first"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the generator (default: 0)")
    arguments = parser.parse_args()
    if arguments.out is None and arguments.measure is None:
        parser.error("name --out, or --measure to write new labels")
    if arguments.measure is not None:
        groups = generate(arguments.seed, arguments.measure)
        summary = measure(groups, arguments.labels, date=date.today().isoformat())
        print(f"{arguments.labels}: {summary.functions:,} functions in {summary.groups:,} groups")
        for reason, count in summary.left_out.items():
            print(f"  left out {count:,}: {reason}")
    if arguments.out is not None:
        build(lambda: CounterfactualBuilder(arguments.labels, arguments.split), arguments.out, EDITS_SCHEMA)


if __name__ == "__main__":
    main()
