"""``rlm-lsp measure diff``: the functions of a bench file at a git revision and now, timed in turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click
from rlm_core.errors import DataError
from rlm_core.measurement.functions.revisions import RevisionTiming, compare_revisions
from rlm_core.measurement.functions.run import check_python, find_python
from rlm_core.measurement.functions.scaling import BENCH_FILES
from rlm_core.types import Band

from rlm_lsp.history.git import commit_of, repository_of
from rlm_lsp.rendering import console, labels
from rlm_lsp.rendering.escaping import code_span

from . import options
from .options import PATH

_HEAD = ("function", "n", "before", "now", "ratio", "")


@click.command(name="diff")
@click.argument("revision", metavar="REV")
@click.option("--bench", metavar="FILE", type=PATH, help="Bench file.", show_default=" or ".join(BENCH_FILES))
@click.option("--name", "names", metavar="NAME", multiple=True, help="Only this function of the file; repeatable.")
@click.option(
    "--size",
    "sizes",
    metavar="N",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1000,),
    help="Size of the inputs; repeatable.",
)
@click.option("--rounds", metavar="K", type=click.IntRange(min=5, max=1000), default=20, help="Rounds of each.")
@click.option("--python", metavar="PATH", help="Interpreter.", show_default="that of the environment")
@options.output_format("table", "json", "markdown")
def diff(
    revision: str,
    bench: Path | None,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    rounds: int,
    python: str | None,
    form: Literal["table", "json", "markdown"],
) -> None:
    """Time the functions of a bench file at a git revision and now, in turn.

    REV is the commit to compare the working tree with. A process for each of the two imports the project's modules, and
    their rounds alternate, so that other work on the machine slows down both. The exit status is 1 if nothing could be
    timed.
    """
    folder = Path.cwd()
    repository = repository_of(folder)
    if repository is None:
        raise DataError(f"{folder}: not in a git repository")
    commit = commit_of(repository, revision)
    if commit is None:
        raise DataError(f"{revision}: not a revision of {repository}")
    file = bench or next((path for name in BENCH_FILES if (path := folder / name).is_file()), None)
    if file is None:
        raise DataError(f"{folder}: has no {' or '.join(BENCH_FILES)}; write one or name it with --bench")
    interpreter = python or find_python(folder)
    check_python(interpreter, needs_pytest=False)
    console.note(f"runs the functions of {file} with {interpreter}, at {commit[:12]} and in the working tree")
    found = list(
        compare_revisions(
            folder.resolve(),
            repository,
            commit,
            file.absolute(),
            sizes,
            rounds,
            interpreter,
            console.note,
            names,
        )
    )
    if form == "json":
        print(json.dumps([{**asdict(one), "direction": one.direction} for one in found], indent=1))
    elif form == "markdown" and found:
        print("\n".join(_markdown(found)))
    elif found:
        console.print_table([list(_HEAD), *(_cells(one) for one in found)])
    if not found:
        raise click.exceptions.Exit(1)


def _cells(one: RevisionTiming) -> list[str]:
    band = labels.ratio_band(Band(one.low, one.high, 0.9))
    times = [labels.quantity("latency", value) for value in (one.base, one.head)]
    words = {"unknown": "cannot tell"}.get(one.direction, one.direction)
    return [one.name, f"{one.size:,}", *times, f"{labels.times(one.ratio)} ({band})", words]


def _markdown(found: Sequence[RevisionTiming]) -> list[str]:
    """The rows as a table, for a comment on a pull request."""
    lines = [f"| {' | '.join(_HEAD)} |", "|---" * len(_HEAD) + "|"]
    for one in found:
        name, *cells = _cells(one)
        lines.append(f"| {code_span(name)} | {' | '.join(cells)} |")
    return lines
