"""``python -m tools.counterfactual``: measured labels of generated functions -> a data set in Parquet.

By default the labels in this folder are used. ``--measure`` generates functions of small inputs and their edits,
``--measure-literal`` functions whose text fixes their cost; ``--measure-hand-written`` takes those written by hand. All
measure them on this machine and write a label file.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from rlm_core.errors import RlmError
from rlm_core.training.datasets.schema import EDITS_SCHEMA
from rlm_core.training.datasets.splits import SPLITS
from tqdm import tqdm

from tools.data_set import build

from .builder import HAND_WRITTEN_LABELS, LABELS, LITERAL_LABELS, CounterfactualBuilder
from .generator import generate
from .hand_written.measuring import measure as measure_hand_written
from .literal.measuring import measure_shards, merge
from .measuring import Summary, measure


def main() -> None:
    """Build the data set or measure new labels."""
    parser = argparse.ArgumentParser(prog="python -m tools.counterfactual", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, nargs="+", help="label files (default: those in this folder)")
    parser.add_argument("--out", type=Path, help="Parquet file to write")
    parser.add_argument("--split", choices=["auto", *SPLITS], default="auto", help="split of all rows (default: auto)")
    parser.add_argument(
        "--measure", type=int, metavar="GROUPS", help="measure this many new groups over small inputs first"
    )
    parser.add_argument(
        "--measure-literal", type=int, metavar="GROUPS", help="measure this many new groups of literal work first"
    )
    parser.add_argument(
        "--measure-hand-written", action="store_true", help="measure the functions written by hand first"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the generator (default: 0)")
    parser.add_argument("--python", help="interpreter to measure, with numpy for literal work (default: python3.12)")
    parser.add_argument(
        "--shards", type=Path, default=Path("shards"), help="folder of --measure-literal, to continue from (./shards)"
    )
    arguments = parser.parse_args()
    measures = arguments.measure_hand_written or (arguments.measure, arguments.measure_literal) != (None, None)
    if arguments.out is None and not measures:
        parser.error(
            "name --out, or one of --measure, --measure-literal and --measure-hand-written to write new labels"
        )
    today = date.today().isoformat()
    try:
        if arguments.measure is not None:
            path = arguments.labels[0] if arguments.labels else LABELS
            _report(
                path, measure(generate(arguments.seed, arguments.measure), path, date=today, python=arguments.python)
            )
        if arguments.measure_hand_written:
            path = arguments.labels[0] if arguments.labels else HAND_WRITTEN_LABELS
            _report(path, measure_hand_written(path, date=today, python=arguments.python))
        if arguments.measure_literal is not None:
            with tqdm(desc="measuring", unit="group", total=arguments.measure_literal, disable=None) as bar:

                def progress(done: int, kept: int) -> None:
                    bar.set_postfix(functions=kept, refresh=False)
                    bar.update(done - bar.n)

                measure_shards(
                    arguments.seed, arguments.measure_literal, arguments.shards, date=today, python=arguments.python,
                    progress=progress,
                )  # fmt: skip
            path = arguments.labels[0] if arguments.labels else LITERAL_LABELS
            _report(path, merge(arguments.shards, path))
    except RlmError as error:
        sys.exit(f"error: {error}")
    if arguments.out is not None:
        labels = arguments.labels or (LABELS, LITERAL_LABELS, HAND_WRITTEN_LABELS)
        build(lambda: CounterfactualBuilder(labels, arguments.split), arguments.out, EDITS_SCHEMA)


def _report(path: Path, summary: Summary) -> None:
    print(f"{path}: {summary.functions:,} functions in {summary.groups:,} groups")
    for reason, count in summary.left_out.items():
        print(f"  left out {count:,}: {reason}")


if __name__ == "__main__":
    main()
