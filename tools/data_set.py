"""Parts that the generators' commands share: a builder -> a Parquet file, with progress and a report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from rlm_core.errors import RlmError
from rlm_core.training.datasets.builder import RowBuilder
from rlm_core.training.datasets.schema import SCHEMA, write_rows
from tqdm import tqdm


def build(make: Callable[[], RowBuilder], out: Path, schema: pa.Schema = SCHEMA) -> None:
    """Write the rows of a builder and print what was kept; exit with a message when the labels cannot be used."""
    try:
        builder = make()
        # `disable=None`: no bar where stderr is not a terminal.
        with tqdm(desc="building", unit="label", disable=None, leave=False) as bar:

            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            write_rows(builder.rows(progress), out, schema)
    except RlmError as error:
        sys.exit(f"error: {error}")
    report = builder.report()
    print(f"{out}: {report.rows:,} rows of {report.units:,} units")
    for line in report.lines():
        print(f"  {line}")
