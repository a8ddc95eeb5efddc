"""``rlm-lsp data build``: labels and recovered source text -> a data set in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from rlm_core import DataError

from rlm_lsp.rendering import console

from .extras import training_extra

Kind = Literal["functions", "leethub", "triton", "nas", "counterfactual", "texts", "code-regression"]


def build(
    kind: Kind, labels: Path | None, out: Path, cache: Path | None, split: str, *, offline: bool, wanted: list[str]
) -> None:
    """Build ``out`` and print what was kept and what is missing; ``wanted`` languages only, all when empty.

    Raises:
        RlmError: the labels cannot be used, a language is unknown, or the ``[train]`` extra is missing.
    """
    from rlm_core.source import languages

    for name in wanted:
        languages.by_name(name)
    if wanted and kind != "leethub":
        raise DataError(f"--languages: only leethub has several; leave the option out for {kind}")
    with training_extra():
        from rlm_core.training.datasets.cache import default_cache
        from rlm_core.training.datasets.schema import EDITS_SCHEMA, SCHEMA, write_rows
        from rlm_core.training.datasets.texts import build_texts
    folder = cache or default_cache()
    if kind == "texts":
        with console.progress("reading") as progress:
            count = build_texts(sorted({*folder.glob("*.whl"), *folder.glob("wheels/*.whl")}), out, progress=progress)
        print(f"{out}: {count:,} texts")
        return
    builder = _builder(kind, labels, folder, split, download=not offline, wanted=wanted)
    with console.progress("building") as progress:
        write_rows(builder.rows(progress), out, EDITS_SCHEMA if kind == "counterfactual" else SCHEMA)
    report = builder.report()
    print(f"{out}: {report.rows:,} rows of {report.units:,} units")
    for line in report.lines():
        print(f"  {line}")


def _builder(kind: Kind, labels: Path | None, cache: Path, split: str, *, download: bool, wanted: list[str]) -> Any:
    """The builder of a kind of data set: ``rows(progress)`` and ``report()``."""
    from rlm_core.training.datasets import code_regression, functions, leethub, triton

    from tools.counterfactual import builder as counterfactual
    from tools.nas import builder as nas

    if kind == "counterfactual":
        # Its labels are our own measurements and come with the package.
        return counterfactual.CounterfactualBuilder(labels, split)
    if labels is None:
        raise DataError(f"--labels is missing; name the labels of {kind}")
    if kind == "functions":
        return functions.FunctionBuilder(labels, cache, split, download=download)
    if kind == "triton":
        return triton.TritonBuilder(labels, cache, split, download=download)
    if kind == "code-regression":
        return code_regression.CodeRegressionBuilder(labels, split)
    if kind == "nas":
        return nas.NasBuilder(labels, split)
    return leethub.LeetHubBuilder(labels, cache, split, download=download, languages=frozenset(wanted) or None)
