"""``rlm-lsp rank``: several texts of one function -> which of them to measure, and which are known to be slower."""

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
@options.output_format("text", "json", help="Lines of text, or JSON.")
@options.model
@options.threads
@options.strict
@options.cpu_scale
def command(
    candidates: tuple[str, ...],
    sizes: tuple[str, ...],
    form: Literal["text", "json"],
    model: str,
    threads: int,
) -> None:
    """Say which of several versions of one function to measure: all but those that another is known to beat.

    Name a file with one function, or FILE::NAME for a function in a file. With --size, versions are compared at these
    sizes.
    """
    given = [_size(text) for text in sizes]
    analyser = Analyser()
    texts = [_function(analyser, candidate) for candidate in candidates]
    if not 2 <= len(texts) <= MOST_CANDIDATES:
        raise DataError(f"rank: name 2 to {MOST_CANDIDATES} candidates")
    with console.failures():
        ranking = rank(loading.load_corrected(model, threads=threads, stored=True), texts, given)
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
