"""Structure-aware fuzzing of everything that reads outside data: no undeclared exception, and no slow input.

``python -m tests.reliability.fuzzing --inputs 1000000 --seed 1 --target settings``. Inputs are right documents with a
few hostile changes, and depend on the seed and their number alone: ``--first 4711 --inputs 1`` repeats one.
``--atheris`` mutates the inputs by code coverage instead, where the package atheris is installed.

A target returns the errors that it declares as values or as an ``RlmError`` of one line; anything else is a failure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlm_core.errors import RlmError

from .fuzz_formats import Http, Networks, TritonIr
from .fuzz_settings import Budgets, Globs, Settings
from .fuzz_stores import Cards, Labels, Measurements
from .fuzz_target import Target

_SLOW_SECONDS = 2.0  # of processor time
_SHOWN_FAILURES = 20
_MEMORY_FOLDER = Path("/dev/shm")


@dataclass(slots=True)
class Report:
    """What came of the inputs of one target; times in seconds of processor time."""

    target: str
    inputs: int = 0
    refused: int = 0  # with an error that the target declares
    slowest: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Settings, Budgets, Cards, Labels, Measurements, Networks, TritonIr, Http, Globs)
}


def run(name: str, inputs: int, seed: int, first: int = 0, until: float | None = None) -> Report:
    """Read ``inputs`` inputs of a target, from number ``first`` on, or until a time of ``time.monotonic``."""
    report = Report(name)
    # Files in memory where the system has that: most targets write each input to one.
    folder = Path(tempfile.mkdtemp(dir=_MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None))
    begun = time.process_time()
    try:
        target = TARGETS[name](folder)
        rng = random.Random()
        for number in range(first, first + inputs):
            if until is not None and time.monotonic() > until:
                break
            rng.seed(f"{seed}/{number}")
            try:
                data = target.make(rng)
            except RecursionError:  # changes have nested the document deeper than json.dumps can write
                continue
            problem = _read(target, data, report)
            report.inputs += 1
            if problem is not None and len(report.failures) < _SHOWN_FAILURES:
                report.failures.append(f"--target {name} --seed {seed} --first {number} --inputs 1: {problem}")
    finally:
        shutil.rmtree(folder)
    report.seconds = time.process_time() - begun
    return report


def _read(target: Target, data: bytes, report: Report) -> str | None:
    """What is wrong with how a target read an input, None if nothing is."""
    started = time.process_time()
    problem = None
    try:
        target.read(data)
    except RlmError as error:
        report.refused += 1
        if "\n" in str(error):
            problem = f"a message of several lines: {str(error)[:200]!r}"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{type(error).__name__}: {str(error)[:200]} ({Path(frame.filename).name}:{frame.lineno})"
    seconds = time.process_time() - started
    report.slowest = max(report.slowest, seconds)
    if problem is None and seconds > _SLOW_SECONDS:
        problem = f"took {seconds:.1f} s"
    return problem


def _atheris(name: str, arguments: Sequence[str]) -> None:
    """Let atheris mutate the inputs of a target; it stops at the first failure."""
    atheris: Any = importlib.import_module("atheris")

    folder = Path(tempfile.mkdtemp(dir=_MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None))
    target = TARGETS[name](folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    rng = random.Random(0)
    for number in range(200):
        (corpus / str(number)).write_bytes(target.make(rng))

    def once(data: bytes) -> None:
        problem = _read(target, data, Report(name))
        if problem is not None:
            raise AssertionError(problem)

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], once)
    atheris.Fuzz()


def main(show: Callable[[str], None] = print) -> None:
    """Print a line of JSON per target; the exit status is 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs, over all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--atheris", nargs=argparse.REMAINDER, help="mutate by coverage; what follows is for libFuzzer")
    arguments = parser.parse_args()
    if arguments.atheris is not None:
        _atheris(arguments.target, arguments.atheris)
        return
    chosen = list(TARGETS) if arguments.target == "all" else [arguments.target]
    weight = sum(TARGETS[name].share for name in chosen)
    failed = False
    for name in chosen:
        count = round(arguments.inputs * TARGETS[name].share / weight)
        report = run(name, count, arguments.seed, arguments.first)
        failed |= bool(report.failures)
        show(json.dumps(asdict(report)))
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
