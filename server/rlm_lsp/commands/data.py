"""``rlm-lsp data build``: labels and recovered source text -> a data set in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rlm_core import DataError

from .. import console
from .extras import training_extra

Kind = Literal["functions", "leethub"]


def build(
    kind: Kind, labels: Path, out: Path, cache: Path | None, split: str, *, offline: bool, wanted: list[str]
) -> None:
    """Build ``out`` and print what was kept and what is missing; ``wanted`` languages only, all when empty.

    Raises:
        RlmError: the labels cannot be used, a language is unknown, or the ``[train]`` extra is missing.
    """
    from rlm_core import languages

    for name in wanted:
        languages.by_name(name)
    with training_extra():
        from rlm_core.data import functions, leethub
        from rlm_core.data.cache import default_cache
        from rlm_core.data.schema import write_rows
    folder = cache or default_cache()
    builder: functions.Builder | leethub.Builder
    if kind == "functions":
        if wanted and "python" not in wanted:
            raise DataError("--languages: function labels are Python only; leave the option out")
        builder = functions.Builder(labels, folder, split, download=not offline)
    else:
        builder = leethub.Builder(
            labels, folder, split, download=not offline, languages=frozenset(wanted) if wanted else None
        )
    with console.progress("building") as progress:
        write_rows(builder.rows(progress), out)
    report = builder.report()
    print(f"{out}: {report.rows:,} rows of {report.units:,} units")
    for reason, count in sorted(report.missing.items(), key=lambda item: -item[1]):
        print(f"  left out {count:,}: {reason}; for example {', '.join(report.examples[reason][:3])}")
