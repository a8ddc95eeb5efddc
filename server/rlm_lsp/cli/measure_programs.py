"""``rlm-lsp measure programs``: whole programs on given inputs, in a sandbox; the command is whole here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rlm_core import DataError

from rlm_lsp.rendering import console

from .options import PATH, SpreadCommand, ray_option, store_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlm_core.measurement import Measurement
    from rlm_core.measurement.programs import Plan

_MIB = 2**20


class _Inputs(SpreadCommand):
    spread = "--inputs"


@click.command(cls=_Inputs)
@click.argument("place", metavar="DIR", type=PATH)
@click.option(
    "--inputs",
    metavar="PATH...",
    multiple=True,
    required=True,
    help="Files, folders or globs, each file fed on stdin; {name} is the program's file name without suffix.",
)
@click.option("--language", "languages", metavar="NAME", multiple=True, help="Only this language; may be repeated.")
@click.option("--repeat", metavar="N", type=click.IntRange(1, 1000), default=5, help="Runs that count, an input.")
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True), default=10, help="Seconds of a run.")
@click.option("--memory", metavar="MIB", type=click.IntRange(min=1), default=2048, help="Memory of a run.")
@click.option("--processes", metavar="N", type=click.IntRange(min=1), default=64, help="Processes of a run at once.")
@click.option("--files", metavar="MIB", type=click.IntRange(min=1), default=256, help="Size of a file, output too.")
@click.option(
    "--sandbox",
    "choice",
    type=click.Choice(["auto", "bubblewrap", "limits"]),
    default="auto",
    help="bubblewrap where it works, else limits alone; or one of the two.",
)
@click.option("--python", metavar="PATH", help="For Python programs.", show_default="the environment's")
@click.option("--dry-run", is_flag=True, help="Only say what would be run, and in which sandbox.")
@ray_option
@store_option
def programs(
    place: Path,
    inputs: tuple[str, ...],
    languages: tuple[str, ...],
    repeat: int,
    timeout: float,
    memory: int,
    processes: int,
    files: int,
    choice: Literal["auto", "bubblewrap", "limits"],
    python: str | None,
    dry_run: bool,
    ray: str | None,
    store: Path | None,
) -> None:
    """Measure time and peak memory of whole programs on given inputs, in a sandbox (Linux).

    Programs are source files in DIR, or one file, in the languages whose toolchain is found here. Each is compiled and
    run under limits; one that fails costs only itself.
    """
    from rlm_core.measurement.functions.run import find_python
    from rlm_core.measurement.programs import Limits, make_plan
    from rlm_core.measurement.programs.sandbox import find_sandbox
    from rlm_core.measurement.programs.toolchains import LANGUAGES

    if unknown := sorted(set(languages) - set(LANGUAGES)):
        raise DataError(f"--language {unknown[0]}: programs are measured in {', '.join(LANGUAGES)}")
    limits = Limits(timeout, memory * _MIB, processes, files * _MIB)
    sandbox = find_sandbox(choice)
    python = python or find_python(Path.cwd())
    plan = make_plan(place, inputs, sandbox, python, languages, limits, repeat)
    if dry_run:
        _say(plan)
        return
    for line in (*plan.problems, *plan.told()):
        console.note(line)
    if not _run(plan, store, python, ray):
        raise click.exceptions.Exit(1)


def _say(plan: Plan) -> None:
    for line in plan.told():
        print(line)
    for job in plan.jobs:
        for line in job.told():
            print(line)
    for line in plan.problems:
        print(f"not run: {line}")


def _lines(measurements: Sequence[Measurement]) -> Iterator[str]:
    """A line an input: median and spread of the time, and the peak memory."""
    from rlm_core.types import Band

    from rlm_lsp.rendering import values as render

    inputs: dict[str, list[Measurement]] = {}
    for one in measurements:
        inputs.setdefault(one.workload["input"], []).append(one)
    for name, (time, memory) in inputs.items():
        spread = render.band("latency", Band(time.low, time.high, 0.8))
        yield f"{time.file} < {name}: {render.measured(time)} ({spread}), {render.measured(memory)}"


def _run(plan: Plan, store: Path | None, python: str, ray: str | None) -> bool:
    """Do it, on a cluster where ``ray`` is its address; whether anything was measured."""
    from rlm_core.inference.adaptation.cpu_score import cpu_name
    from rlm_core.measurement import Store
    from rlm_core.measurement.programs import run_plan, spread_plan
    from rlm_core.serving.cluster import Cluster

    kept = Store(store.absolute() if store is not None else None, console.note)
    count = 0

    def keep(measurements: Sequence[Measurement]) -> None:
        nonlocal count
        count += kept.add(measurements)
        for line in _lines(measurements):
            print(line, flush=True)

    try:
        if ray is None:
            result = run_plan(plan, cpu_name(), keep, console.note)
        else:
            with Cluster(ray, console.note) as cluster:
                result = spread_plan(plan, cluster, python, keep, console.note)
    finally:
        if count:
            console.note(f"kept in {kept.path}; rlm-lsp measure list --functions shows what is there")
    console.note(
        f"measured {result.programs:,} of {len(plan.jobs):,} programs, {result.pairs:,} pairs of program and input"
        + (f"; {result.failed:,} failed" if result.failed else "")
    )
    return bool(count)
