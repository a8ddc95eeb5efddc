"""``rlm-lsp rank``: texts of one function or kernel -> which of them to measure, and which are known to be slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click
from rlm_core import RlmError, loading
from rlm_core.errors import DataError
from rlm_core.inference.ranking import MOST_CANDIDATES, Ranking, rank
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.queries.size_comments import read_quantity
from rlm_core.types import Basis, CodeText, Query, SizeValue

from rlm_lsp.rendering import console
from rlm_lsp.rendering.rankings import ranking_lines

from . import options
from .predict import query_selection


@click.command()
@click.argument("candidates", metavar="FILE[::NAME]...", nargs=-1, required=True)
@click.option(
    "--size",
    "sizes",
    metavar="NAME=VALUE",
    multiple=True,
    help="Size of an input, such as items=10k or 'rows[]=200'; repeatable.",
)
@click.option("--device", metavar="NAME", help="GPU at which kernels are ranked.")
@click.option("--workload", metavar="NAME=VALUE", multiple=True, help="Size or dtype of kernels; repeatable.")
@options.output_format("text", "json", help="Lines of text, or JSON.")
@options.model
@options.threads
@options.strict
@options.cpu_scale
def command(
    candidates: tuple[str, ...],
    sizes: tuple[str, ...],
    device: str | None,
    workload: tuple[str, ...],
    form: Literal["text", "json"],
    model: str,
    threads: int,
) -> None:
    """Say which of several versions of one function to measure: all but those that another is known to beat.

    Name a file with one function, or FILE::NAME for a function in a file. With --size, versions are compared at these
    sizes. With --device and --workload, they are Triton kernels.
    """
    given = [_size(text) for text in sizes]
    selection = query_selection((device,) if device else (), workload)
    query = Query("latency", device, selection.workload) if device is not None or workload else None
    analyser = Analyser()
    texts = [_candidate(analyser, candidate, "call" if query is None else "kernel") for candidate in candidates]
    if not 2 <= len(texts) <= MOST_CANDIDATES:
        raise DataError(f"rank: name 2 to {MOST_CANDIDATES} candidates")
    with console.failures():
        ranking = rank(loading.load_corrected(model, threads=threads, stored=True), texts, given, query)
    if form == "json":
        click.echo(json.dumps(ranking_fields(ranking, candidates), indent=2))
    else:
        for line in ranking_lines(ranking, candidates):
            click.echo(line)


def ranking_fields(ranking: Ranking, names: tuple[str, ...]) -> dict[str, object]:
    """The fields of a ranking as JSON has them."""
    return {
        "candidates": [
            {"candidate": names[one.place], "slower_than": [names[place] for place in one.slower_than]}
            for one in ranking.candidates
        ],
        "measure": ranking.measure,
        "compared": ranking.compared,
        "pairs": ranking.pairs,
        "at_sizes": ranking.at_sizes,
        "confidence": ranking.confidence,
    }


def _size(text: str) -> SizeValue:
    name, separator, value = text.partition("=")
    try:
        if not (separator and name):
            raise ValueError(f"`{text}` is not NAME=VALUE")
        return SizeValue(name, read_quantity(value))
    except ValueError as error:
        raise RlmError(f"rank: --size: {error}") from None


def _candidate(analyser: Analyser, candidate: str, basis: Basis) -> CodeText:
    """The function or kernel that a command line names.

    Raises:
        RlmError: the file cannot be read, or has no such unit or more than one.
    """
    path, _, name = candidate.partition("::")
    units = [unit for text in file_units(analyser, Path(path)) for unit in text.units]
    known = [unit for unit in units if unit.code.basis == basis]
    chosen = [unit for unit in known if unit.unit.qualname == name] if name else known
    if len(chosen) != 1:
        names = ", ".join(unit.unit.qualname for unit in known[:8]) or "none"
        kind = "function" if basis == "call" else "kernel"
        raise DataError(f"{candidate}: name one {kind} as FILE::NAME; there are: {names}")
    return chosen[0].code
