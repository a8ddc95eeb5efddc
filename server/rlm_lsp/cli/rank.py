"""``rlm-lsp rank``: several texts of one function -> the chance of each to be the fastest, and which to measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click
from rlm_core import RlmError, loading
from rlm_core.errors import DataError
from rlm_core.inference.ranking import CONFIDENCE, MOST_CANDIDATES, Ranking, rank
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.queries.size_comments import read_quantity
from rlm_core.types import CodeText, SizeValue

from rlm_lsp.rendering import console
from rlm_lsp.rendering.rankings import ranking_lines

from . import options


@click.command()
@click.argument("candidates", metavar="FILE[::NAME]...", nargs=-1, required=True)
@click.option(
    "--size",
    "sizes",
    metavar="NAME=VALUE",
    multiple=True,
    help="Size of an input, such as items=10k or 'rows[]=200'; repeatable.",
)
@click.option(
    "--confidence",
    metavar="P",
    type=click.FloatRange(0.5, 0.99),
    default=CONFIDENCE,
    help="The chance with which the fastest should be among those to measure.",
)
@options.output_format("text", "json", help="Lines of text, or JSON.")
@options.model
@options.threads
@options.strict
@options.cpu_scale
def command(
    candidates: tuple[str, ...],
    sizes: tuple[str, ...],
    confidence: float,
    form: Literal["text", "json"],
    model: str,
    threads: int,
) -> None:
    """Rank several versions of one function by latency, and say how many of them to measure.

    Name a file with one function, or FILE::NAME for a function in a file. Versions are compared in pairs; where it is
    unknown which of two is faster, both keep their chance. With --size, versions are compared at these sizes.
    """
    given = [_size(text) for text in sizes]
    analyser = Analyser()
    texts = [_function(analyser, candidate) for candidate in candidates]
    if not 2 <= len(texts) <= MOST_CANDIDATES:
        raise DataError(f"rank: name 2 to {MOST_CANDIDATES} candidates")
    with console.failures():
        ranking = rank(loading.load_corrected(model, threads=threads, stored=True), texts, given, confidence)
    if form == "json":
        click.echo(json.dumps(ranking_fields(ranking, candidates), indent=2))
    else:
        for line in ranking_lines(ranking, candidates):
            click.echo(line)


def ranking_fields(ranking: Ranking, names: tuple[str, ...]) -> dict[str, object]:
    """The fields of a ranking as JSON has them."""
    return {
        "candidates": [{"candidate": names[one.place], "chance": one.chance} for one in ranking.candidates],
        "measure": ranking.measure,
        "confidence": ranking.confidence,
        "compared": ranking.compared,
        "pairs": ranking.pairs,
        "at_sizes": ranking.at_sizes,
    }


def _size(text: str) -> SizeValue:
    name, separator, value = text.partition("=")
    try:
        if not (separator and name):
            raise ValueError(f"`{text}` is not NAME=VALUE")
        return SizeValue(name, read_quantity(value))
    except ValueError as error:
        raise RlmError(f"rank: --size: {error}") from None


def _function(analyser: Analyser, candidate: str) -> CodeText:
    """The function that a command line names.

    Raises:
        RlmError: the file cannot be read, or has no such function or more than one.
    """
    path, _, name = candidate.partition("::")
    units = [unit for text in file_units(analyser, Path(path)) for unit in text.units]
    functions = [unit for unit in units if unit.code.basis == "call"]
    chosen = [unit for unit in functions if unit.unit.qualname == name] if name else functions
    if len(chosen) != 1:
        names = ", ".join(unit.unit.qualname for unit in functions[:8]) or "none"
        raise DataError(f"{candidate}: name one function as FILE::NAME; there are: {names}")
    return chosen[0].code
