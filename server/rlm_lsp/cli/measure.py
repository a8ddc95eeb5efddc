"""``rlm-lsp measure``: run tests, applications or programs, and store what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click
from rlm_core import DataError, RlmError
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement import Measurement, Store
from rlm_core.measurement.functions.collect import RunMeasurements, import_left_runs, import_run, new_run, spread_tests
from rlm_core.measurement.functions.run import (
    Pass,
    ScriptPlan,
    SuitePlan,
    check_python,
    find_python,
    run,
    run_script,
)
from rlm_core.measurement.functions.scaling import BENCH_FILES, ScaleLimits, left_out
from rlm_core.measurement.functions.scaling import scale as call_again
from rlm_core.measurement.functions.sources import packages_under
from rlm_core.measurement.programs import ProgramLimits, ProgramPlan, make_plan, run_plan, spread_plan
from rlm_core.measurement.programs.sandbox import find_sandbox
from rlm_core.measurement.programs.toolchains import LANGUAGES
from rlm_core.serving.ray_cluster import Cluster
from rlm_core.types import Band

from rlm_lsp.rendering import console
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.console import counted

from . import options
from .measure_diff import diff
from .measure_files import export, import_, list_
from .options import PATH, Group, SpreadCommand, open_store

_MIB = 2**20
_scale = click.option(
    "--scale/--no-scale", default=False, help="Then call functions again with larger inputs, to measure their growth."
)
_scale_time = click.option(
    "--scale-time",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=600,
    help="Processor seconds for calls with larger inputs.",
)


@click.group(cls=Group)
def command() -> None:
    """Measure your own functions and programs, and store the results."""


@command.command()
@click.option("--package", "packages", metavar="NAME", multiple=True, help="Import name of a package; repeatable.")
@click.option("--memory/--no-memory", default=True, help="Run the tests a second time, to measure peak memory.")
@click.option(
    "--python", metavar="PATH", help="Interpreter that runs the tests.", show_default="that of the environment"
)
@click.option(
    "--calls", metavar="K", type=click.IntRange(min=1), default=5, help="Calls measured per function and test."
)
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0),
    default=300,
    help="Time limit of a test in seconds, four times as long for memory (0: none).",
)
@_scale
@_scale_time
@options.ray
@options.store
@click.argument("arguments", metavar="[-- PYTEST-ARGS]...", nargs=-1, type=click.UNPROCESSED)
def tests(
    packages: tuple[str, ...],
    memory: bool,
    python: str | None,
    calls: int,
    timeout: float,
    scale: bool,
    scale_time: float,
    ray: str | None,
    store: Path | None,
    arguments: tuple[str, ...],
) -> None:
    """Run this project's tests with pytest, and measure latency and peak memory of its functions.

    Without --package, measure the packages in the working directory. The tests run twice, for latency and for memory;
    a long run changes between the two, so that you can stop it and keep both.
    Calls that return are measured even if their test fails. With --scale, functions are then called again with larger
    inputs, in a separate process. The exit status is 1 if no call was measured.
    """
    folder = Path.cwd()
    kept = open_store(store)
    import_left_runs(kept, console.note)
    measured = packages or tuple(packages_under(folder))
    if not measured:
        raise DataError(f"{folder}: has no package; name one with --package")
    passes: tuple[Pass, ...] = ("latency", "memory") if memory else ("latency",)
    plan = SuitePlan(python or find_python(folder), arguments, folder, measured, passes, calls, timeout, examples=scale)
    if scale and ray is not None:
        raise DataError("--scale: calls with larger inputs are measured on this machine; leave out --ray")
    check_python(plan.python)
    times = "twice" if memory else "once"
    console.note(f"measures {', '.join(measured)}; runs in {folder}, {times}: {' '.join(plan.command)}")
    runs: list[Path] = []
    stopped: BaseException | None = None
    try:
        if ray is None:
            runs.append(new_run(kept))
            run(plan, runs[0], console.note)
            if scale:
                _call_again(runs[0], plan.python, folder, scale_time)
        else:
            with Cluster(ray, console.note) as cluster:
                spread_tests(plan, cluster, kept, console.note, lambda text: print(text, end="", flush=True), runs)
    except (KeyboardInterrupt, RlmError) as error:
        stopped = error
    results = [_import_run(kept, folder) for folder in runs]
    for result in results:
        _summarise(result, kept.path, plan)
    if stopped is None and not any(result.measurements for result in results):
        for result in results:
            _explain_nothing(result, plan)
    if stopped is not None:
        raise stopped
    if not any(result.measurements for result in results):
        raise click.exceptions.Exit(1)


def _import_run(kept: Store, folder: Path) -> RunMeasurements:
    try:
        return import_run(kept, folder)
    except RlmError as error:
        raise RlmError(f"{error}; the recordings stay in {folder}, the next rlm-lsp measure imports them") from None


def _call_again(run_folder: Path, python: str, folder: Path, seconds: float) -> None:
    """Call the functions of a run again with larger inputs; print how many have a curve, and why others have none."""
    bench = next((path for name in BENCH_FILES if (path := folder / name).is_file()), None)
    functions = call_again(run_folder, python, ScaleLimits(total=seconds), console.note, bench)
    curves = sum(bool(one.points) for one in functions)
    console.note(f"larger inputs: {counted(curves, 'function')} measured at several sizes")
    for reason, count in left_out(functions).most_common():
        console.note(f"not at several sizes: {count:,} ({reason})")


def _summarise(result: RunMeasurements, store: Path, plan: SuitePlan) -> None:
    for metric, count in result.tests.items():
        if count:
            functions = sum(measurement.metric == metric for measurement in result.measurements)
            console.note(f"{metric}: {functions:,} functions in {count:,} tests")
    _note_left_out(result)
    files: dict[str, list[str]] = {}
    for file, reason in result.uncollected.items():
        files.setdefault(reason, []).append(file or "the tests")
    for reason, names in files.items():
        others = f" and {counted(len(names) - 1, 'more file')}" if names[1:] else ""
        console.note(
            f"{names[0]}{others}: left out, since pytest cannot import the file ({reason}); install what it needs for"
            f" {plan.python}"
        )
    if result.measurements:
        console.note(f"stored in {store}; list them with: rlm-lsp measure list")


def _note_left_out(result: RunMeasurements) -> None:
    for reason in result.disturbed:
        console.note(f"latencies are stored but marked as disturbed: {reason}")
    for reason, count in result.left_out.most_common():
        console.note(f"left out {count:,}: {reason}")


def _explain_nothing(result: RunMeasurements, plan: SuitePlan) -> None:
    """Say why nothing was measured, where no other line has said so."""
    packages = ", ".join(plan.packages)
    if result.left_out:
        return
    if not sum(result.tests.values()):
        console.note("nothing was measured: no test ran; name the folder of your tests after --")
    elif not result.passed:
        console.note("nothing was measured: no test passed; see the output of pytest above")
    elif not result.imported:
        console.note(f"nothing was measured: no test imports {packages}; give packages by their import names")
    else:
        console.note(f"nothing was measured: the tests call no Python function of {packages}")


@command.command(name="run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--package", "packages", metavar="NAME", multiple=True, help="Import name of a package; repeatable.")
@click.option("--memory", is_flag=True, help="Measure peak memory instead of latency; the application is slower.")
@click.option("--python", metavar="PATH", help="Interpreter that runs it.", show_default="that of the environment")
@click.option("--calls", metavar="K", type=click.IntRange(min=1), default=100, help="Calls measured per function.")
@_scale
@_scale_time
@options.store
@click.option("-m", "--module", "module", is_flag=True, help="SCRIPT is the name of a module, as in python -m.")
@click.argument("script")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run_(
    packages: tuple[str, ...],
    memory: bool,
    python: str | None,
    calls: int,
    scale: bool,
    scale_time: float,
    store: Path | None,
    module: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run an application and measure its functions, with the sizes of its real inputs.

    Measures the packages in the working directory and the functions of SCRIPT itself. Options that follow SCRIPT are
    for the application. The exit status is that of the application, or 1 if no call was measured.
    """
    if memory and scale:
        raise DataError("--scale: examples of inputs are kept while latency is measured; leave out --memory")
    folder = Path.cwd()
    kept = open_store(store)
    import_left_runs(kept, console.note)
    target = ("-m", script, *arguments) if module else (script, *arguments)
    metric: Pass = "memory" if memory else "latency"
    measured = packages or tuple(packages_under(folder))
    plan = ScriptPlan(python or find_python(folder), target, measured, metric, calls, scale)
    check_python(plan.python, needs_pytest=False)
    run_folder = new_run(kept)
    status = run_script(plan, run_folder)
    stopped: BaseException | None = None
    if scale:
        try:
            _call_again(run_folder, plan.python, folder, scale_time)
        except (KeyboardInterrupt, RlmError) as error:
            stopped = error
    result = _import_run(kept, run_folder)
    _note_left_out(result)
    console.note(f"{metric}: {counted(len(result.measurements), 'function')} measured, stored in {kept.path}")
    if not result.measurements:
        names = ", ".join(measured) or "the script"
        console.note(f"nothing was measured: the run called no Python function of {names}, or was killed")
    if stopped is not None:
        raise stopped
    raise click.exceptions.Exit(status if status > 0 else 128 - status if status else int(not result.measurements))


class _ProgramsCommand(SpreadCommand):
    spread = "--inputs"


@command.command(cls=_ProgramsCommand)
@click.argument("programs", metavar="DIR", type=PATH)
@click.option(
    "--inputs",
    metavar="PATH...",
    multiple=True,
    required=True,
    help="Files, folders or globs; each file is fed on stdin. {name} is the program's file name without suffix.",
)
@click.option("--language", "languages", metavar="NAME", multiple=True, help="Only this language; repeatable.")
@click.option(
    "--repeat", metavar="N", type=click.IntRange(1, 1000), default=5, help="Measured runs per program and input."
)
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=10,
    help="Time limit of a run in seconds.",
)
@click.option("--memory", metavar="MIB", type=click.IntRange(min=1), default=2048, help="Memory limit of a run.")
@click.option("--processes", metavar="N", type=click.IntRange(min=1), default=64, help="Process limit of a run.")
@click.option(
    "--files",
    metavar="MIB",
    type=click.IntRange(min=1),
    default=256,
    help="Size limit of each file, also of the output.",
)
@click.option(
    "--sandbox",
    "choice",
    type=click.Choice(["bubblewrap", "limits"]),
    default="bubblewrap",
    help="limits: without a sandbox, for programs that you trust: they can read and write what you can.",
)
@click.option(
    "--python", metavar="PATH", help="Interpreter of Python programs.", show_default="that of the environment"
)
@click.option("--dry-run", is_flag=True, help="Show what would run, and in which sandbox, without running it.")
@options.ray
@options.store
def programs(
    programs: Path,
    inputs: tuple[str, ...],
    languages: tuple[str, ...],
    repeat: int,
    timeout: float,
    memory: int,
    processes: int,
    files: int,
    choice: Literal["bubblewrap", "limits"],
    python: str | None,
    dry_run: bool,
    ray: str | None,
    store: Path | None,
) -> None:
    """Measure time and peak memory of whole programs on given inputs, in a sandbox (Linux).

    DIR holds source files in the languages whose toolchains are installed; it may also be a single file. A program
    that fails does not stop the others. The exit status is 1 if nothing was measured.
    """
    if unknown := sorted(set(languages) - set(LANGUAGES)):
        raise DataError(f"--language {unknown[0]}: programs can be measured in {', '.join(LANGUAGES)}")
    limits = ProgramLimits(timeout, memory * _MIB, processes, files * _MIB)
    sandbox = find_sandbox(choice)
    python = python or find_python(Path.cwd())
    plan = make_plan(programs, inputs, sandbox, python, languages, limits, repeat)
    if dry_run:
        for line in (*plan.describe(), *(line for job in plan.jobs for line in job.describe())):
            console.line(line)
        for line in plan.problems:
            console.line(f"not run: {line}")
        return
    for line in (*plan.problems, *plan.describe()):
        console.note(line)
    if not _run_programs(plan, open_store(store), python, ray):
        raise click.exceptions.Exit(1)


def _run_programs(plan: ProgramPlan, kept: Store, python: str, ray: str | None) -> int:
    """Run the programs, here or on a cluster, and return the number of measurements."""
    count = 0

    def keep(measurements: Sequence[Measurement]) -> None:
        nonlocal count
        count += kept.add(measurements)
        _print_program(measurements)

    try:
        if ray is None:
            result = run_plan(plan, cpu_name(), keep, console.note)
        else:
            with Cluster(ray, console.note) as cluster:
                result = spread_plan(plan, cluster, python, keep, console.note)
    finally:
        if count:
            console.note(f"stored in {kept.path}; list them with: rlm-lsp measure list --functions")
    console.note(
        f"measured {result.programs:,} of {len(plan.jobs):,} programs, {result.pairs:,} pairs of program and input"
        + (f"; {result.failed:,} failed" if result.failed else "")
    )
    return count


def _print_program(measurements: Sequence[Measurement]) -> None:
    """Print one line per input: median and spread of the time, and the peak memory."""
    inputs: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        inputs.setdefault(measurement.workload["input"], []).append(measurement)
    for name, (time, memory) in inputs.items():
        spread = render.band("latency", Band(time.low, time.high, 0.8))
        console.line(f"{time.file} < {name}: {render.measured(time)} ({spread}), {render.measured(memory)}")


for _other in (diff, list_, export, import_):
    command.add_command(_other)
