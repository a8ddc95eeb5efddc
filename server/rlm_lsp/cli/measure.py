"""``rlm-lsp measure``: run tests or programs, and look at, hand out and take in what was measured.

The commands are whole here, options and all; what they need is imported when they are called.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rlm_core import DataError, RlmError

from rlm_lsp.rendering import console

from .extras import training_extra
from .measure_programs import programs
from .options import PATH, ray_option, store_option

if TYPE_CHECKING:
    from rlm_core.measurement import Store
    from rlm_core.measurement.functions.collect import Collected
    from rlm_core.measurement.labels import Label
    from rlm_core.measurement.types import Measurement

_packages = click.argument("packages", metavar="[PACKAGE]...", nargs=-1)


@click.command()
@click.option("--package", "packages", metavar="NAME", multiple=True, help="A package by its import name; repeatable.")
@click.option("--memory/--no-memory", default=True, help="Run the tests a second time, for peak memory.")
@click.option("--python", metavar="PATH", help="The interpreter that runs the tests.", show_default="the environment's")
@click.option("--calls", metavar="K", type=click.IntRange(min=1), default=5, help="Calls of a function taken a test.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0),
    default=300,
    help="Seconds that a test may take (four times as many for memory); 0 for any.",
)
@ray_option
@store_option
@click.argument("arguments", metavar="[-- PYTEST-ARGS]...", nargs=-1, type=click.UNPROCESSED)
def tests(
    packages: tuple[str, ...],
    memory: bool,
    python: str | None,
    calls: int,
    timeout: float,
    ray: str | None,
    store: Path | None,
    arguments: tuple[str, ...],
) -> None:
    """Run this project's tests with pytest and measure latency and peak memory of its functions.

    Without --package these are the packages under the working directory. The tests run twice, for latency and for
    memory; tests that fail count for the calls that returned.
    """
    from rlm_core.measurement.functions.cluster import spread_tests
    from rlm_core.measurement.functions.collect import new_run, take_in_left
    from rlm_core.measurement.functions.run import Pass, Plan, check_python, find_python, run
    from rlm_core.measurement.functions.sources import packages_under
    from rlm_core.serving.cluster import Cluster

    folder = Path.cwd()
    kept = opened(store)
    take_in_left(kept, console.note)
    chosen = packages or tuple(packages_under(folder))
    if not chosen:
        raise DataError(f"{folder}: has no package; name what to measure with --package")
    passes: tuple[Pass, ...] = ("latency", "memory") if memory else ("latency",)
    plan = Plan(python or find_python(folder), arguments, folder, chosen, passes, calls, timeout)
    check_python(plan.python)
    console.note(f"measures {', '.join(chosen)}; runs in {folder}, {_times(len(passes))}: {' '.join(plan.command)}")
    places: list[Path] = []
    stopped: BaseException | None = None
    try:
        if ray is None:
            places.append(new_run(kept))
            run(plan, places[0], console.note)
        else:
            with Cluster(ray, console.note) as cluster:
                spread_tests(plan, cluster, kept, console.note, lambda text: print(text, end="", flush=True), places)
    except (KeyboardInterrupt, RlmError) as error:
        stopped = error
    found = [_taken_in(kept, place) for place in places]
    for one in found:
        _tell(one, kept.path)
    if stopped is not None:
        raise stopped
    if not any(one.measurements for one in found):
        raise click.exceptions.Exit(1)


def _taken_in(kept: Store, place: Path) -> Collected:
    from rlm_core.measurement.functions.collect import take_in

    try:
        return take_in(kept, place)
    except RlmError as error:
        raise RlmError(f"{error}; what was seen lies in {place}, the next rlm-lsp measure takes it in") from None


def _tell(found: Collected, path: Path) -> None:
    for metric, tests in found.tests.items():
        if tests:
            count = sum(one.metric == metric for one in found.measurements)
            console.note(f"{metric}: {count:,} functions in {tests:,} tests")
    for reason in found.disturbed:
        console.note(f"latencies are kept but marked as disturbed: {reason}")
    for reason, count in found.left_out.most_common():
        console.note(f"left out {count:,}: {reason}")
    if found.measurements:
        console.note(f"kept in {path}; rlm-lsp measure list shows what is there")
    else:
        console.note("no call of these packages was seen; packages are named as in import")


def _times(count: int) -> str:
    return "once" if count == 1 else "twice"


@click.command(name="list")
@_packages
@click.option("--functions", is_flag=True, help="A row a unit, instead of one a package.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="A table, or JSON.")
@store_option
def list_(packages: tuple[str, ...], functions: bool, form: Literal["table", "json"], store: Path | None) -> None:
    """Show what was measured."""
    from rlm_core.measurement.functions.collect import take_in_left
    from rlm_core.measurement.labels import newest

    kept = opened(store)
    take_in_left(kept, console.note)
    if functions:
        rows = [_function_row(one) for one in newest(kept.all(packages))]
        rows.sort(key=lambda row: (row["package"], row["function"], row["metric"]))
    else:
        rows = [
            {name: getattr(one, name) for name in one.__slots__}
            for one in kept.summaries()
            if not packages or one.package in packages
        ]
    if form == "json":
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    elif rows:
        _print_table(rows)
    else:
        console.note(f"{kept.path}: nothing is measured yet; run rlm-lsp measure or rlm-lsp bench")


def _function_row(one: Measurement) -> dict[str, str]:
    from rlm_core.measurement.types import RUNTIME

    from rlm_lsp.rendering import values as render

    return {
        "package": one.package,
        "function": f"{one.module if one.basis == 'call' else one.file}:{one.qualname}",
        "metric": one.metric,
        "runtime": one.workload.get(RUNTIME, ""),
        "input": one.workload.get("input") or " ".join(f"{name}={value}" for name, value in one.asked.items()),
        "median": render.measured(one),
        "calls": f"{one.calls:,}",
        "tests": f"{one.tests:,}",
        "date": one.measured_at[:10],
        "device": one.device,
    }


def _print_table(rows: list[dict[str, str]]) -> None:
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


@click.command()
@_packages
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "parquet"]), default="jsonl", help="The form of the rows."
)
@click.option("--out", metavar="FILE|-", default="-", help="Where the rows go.")
@click.option(
    "--source",
    is_flag=True,
    help="Add the source text and that of callees, where files still hold it; as Parquet: a data set to train on.",
)
@click.option("--all-runs", is_flag=True, help="All runs that are kept, instead of each function's newest.")
@store_option
def export(
    packages: tuple[str, ...],
    form: Literal["jsonl", "parquet"],
    out: str,
    source: bool,
    all_runs: bool,
    store: Path | None,
) -> None:
    """Write measurements as labels: rows that `data build functions`, `train` or `measure import` read.

    Rows hold no source text unless --source asks for it.
    """
    from rlm_core.measurement.labels import newest, to_labels, with_source

    if form == "parquet" and out == "-":
        raise RlmError("export: Parquet needs a file; add --out FILE")
    kept = opened(store)
    found = kept.all(packages)
    found = found if all_runs else newest(found)
    labels = to_labels(found)
    if not labels:
        raise DataError(f"{kept.path}: holds no measurement{' of ' + ', '.join(packages) if packages else ''}")
    without = with_source(labels, found) if source else 0
    _write(labels, form, out, source=source)
    if without:
        console.note(f"{without:,} of {len(labels):,} rows are without text: their files are gone or have changed")


def _write(labels: list[Label], form: str, out: str, *, source: bool) -> None:
    try:
        if form == "parquet":
            with training_extra():
                from rlm_core.training.datasets import measured
            if source:
                count = measured.write_training_rows(labels, Path(out))
                console.note(f"{out}: {count:,} rows to train on")
            else:
                measured.write_labels(labels, Path(out))
            return
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in labels)
        if out == "-":
            sys.stdout.writelines(lines)
            return
        partial = Path(f"{out}.partial")
        with partial.open("w", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(lines)
        partial.replace(out)
    except BrokenPipeError:
        raise
    except OSError as error:
        with suppress(OSError):
            Path(f"{out}.partial").unlink(missing_ok=True)
        raise RlmError(f"{out}: cannot be written ({error.strerror}); check the disk and the path") from None


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@store_option
def import_(files: tuple[Path, ...], store: Path | None) -> None:
    """Take in measurements that `rlm-lsp measure export` wrote, here or on another machine."""
    from rlm_core.measurement.labels import from_labels, read_jsonl

    kept = opened(store)
    for path in files:
        if path.suffix == ".parquet":
            with training_extra():
                from rlm_core.training.datasets import measured
            measurements = list(from_labels(measured.read_labels(path)))
        else:
            measurements = list(from_labels(read_jsonl(path)))
        console.note(f"{path}: {kept.add(measurements):,} measurements taken in")


def opened(path: Path | None) -> Store:
    """The store in a file, None for the user's; notes go to the console."""
    from rlm_core.measurement import Store

    return Store(path.absolute() if path is not None else None, console.note)


COMMANDS = (tests, programs, list_, export, import_)
