"""``rlm-lsp data build``: labels and recovered source text -> a data set in Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import click
from rlm_core import DataError
from rlm_core.source import languages as known_languages

from rlm_lsp.rendering import console

from .options import PATH, Group, optional_packages

Kind = Literal[
    "functions",
    "calls",
    "leethub",
    "boj",
    "atcoder",
    "triton",
    "growth",
    "scaled",
    "texts",
    "code-regression",
    "triton-latency",
]
_OF_JUDGES = ("leethub", "boj", "atcoder")
# Their generators are experiments of the repository, which no installed package holds.
_IN_TOOLS = ("nas", "counterfactual")


class _KindChoice(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in _IN_TOOLS:
            raise DataError(f"data build {value} has moved; run in a checkout: python -m tools.{value} --help")
        return super().convert(value, param, ctx)


@click.group(cls=Group)
def command() -> None:
    """Build data sets from labels."""


@command.command()
@click.argument("kind", type=_KindChoice(get_args(Kind)))
@click.option(
    "--labels",
    metavar="PATH",
    type=PATH,
    multiple=True,
    help="Label file (.jsonl or .jsonl.gz); for triton also a folder, and several; for code-regression also a .parquet "
    "file; for triton-latency a .parquet file or a folder of them.",
)
@click.option("--out", metavar="X.parquet", type=PATH, required=True, help="The data set to write.")
@click.option("--source-cache", metavar="DIR", type=PATH, help="Folder for downloaded wheels and repositories.")
@click.option(
    "--split",
    type=click.Choice(["auto", "train", "val", "cal", "test"]),
    default="auto",
    help="Put all rows into one split, or split by group (auto).",
)
@click.option("--offline", is_flag=True, help="Use only what the source cache holds.")
@click.option(
    "--languages",
    metavar="a,b",
    default="",
    show_default=False,
    help="Keep only these languages (leethub, boj, atcoder).",
)
@click.option("--device", metavar="NAME", help="GPU that the run times are of (triton-latency), such as H100.")
def build(
    kind: Kind,
    labels: tuple[Path, ...],
    out: Path,
    source_cache: Path | None,
    split: str,
    offline: bool,
    languages: str,
    device: str | None,
) -> None:
    """Recover the source text of labels and write a data set (needs the [train] extra)."""
    wanted = [name.strip() for name in languages.split(",") if name.strip()]
    for name in wanted:
        known_languages.by_name(name)
    if wanted and kind not in _OF_JUDGES:
        raise DataError(f"--languages: only {', '.join(_OF_JUDGES)} have several languages; leave it out for {kind}")
    if device is not None and kind != "triton-latency":
        raise DataError(f"--device: the labels of {kind} name their devices; leave it out")
    with optional_packages():
        from rlm_core.training.datasets import functions, growth, scaled, schema
        from rlm_core.training.datasets.cache import default_cache
        from rlm_core.training.datasets.texts import build_texts
    cache = source_cache or default_cache()
    if kind == "texts":
        with console.progress("reading") as progress:
            count = build_texts(sorted({*cache.glob("*.whl"), *cache.glob("wheels/*.whl")}), out, progress=progress)
        console.line(f"{out}: {count:,} texts")
        return
    if not labels:
        raise DataError(f"--labels is missing; name the labels of {kind}")
    if len(labels) > 1 and kind != "triton":
        raise DataError(f"--labels: {kind} has one file of labels; name it once")
    if kind == "triton-latency" and device is None:
        raise DataError(
            "--device is missing: the data set does not name the GPU of its run times; name it, such as H100"
        )
    builder = _builder(kind, labels, cache, split, download=not offline, wanted=wanted, device=device)
    with console.progress("building") as progress:
        others = {"growth": growth.SCHEMA, "calls": functions.CALL_GRAPH_SCHEMA, "scaled": scaled.SCHEMA}
        columns = others.get(kind, schema.SCHEMA)
        schema.write_rows(builder.rows(progress), out, columns)
    report = builder.report()
    console.line(f"{out}: {report.rows:,} rows of {report.units:,} units")
    for line in report.lines():
        console.line(f"  {line}")


def _builder(
    kind: Kind, given: Sequence[Path], cache: Path, split: str, *, download: bool, wanted: list[str], device: str | None
) -> Any:
    """The builder of a kind of data set; all have ``rows(progress)`` and ``report()``."""
    from rlm_core.training.datasets import (
        code_regression,
        functions,
        growth,
        judged_programs,
        scaled,
        triton,
        triton_latency,
    )

    labels = given[0]
    if kind == "functions":
        return functions.FunctionBuilder(labels, cache, split, download=download)
    if kind == "calls":
        return functions.CallGraphBuilder(labels, cache, split, download=download)
    if kind == "scaled":
        return scaled.ScaledBuilder(labels, cache, split, download=download)
    if kind == "triton":
        return triton.TritonBuilder(given, cache, split, download=download)
    if kind == "growth":
        return growth.GrowthBuilder(labels, cache, split, download=download)
    if kind == "code-regression":
        return code_regression.CodeRegressionBuilder(labels, split)
    if kind == "triton-latency":
        assert device is not None, "checked before"
        return triton_latency.TritonLatencyBuilder(labels, device, split)
    languages = frozenset(wanted) or None
    return judged_programs.JudgedProgramBuilder(kind, labels, cache, split, download=download, languages=languages)
