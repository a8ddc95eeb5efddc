"""The plan of a run: programs with their toolchains and inputs, repetitions, limits and sandbox."""

from __future__ import annotations

import glob
import hashlib
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlm_core.errors import DataError

from .sandbox import ProgramLimits, Sandbox
from .sources import Program, find_programs
from .toolchains import LANGUAGES, InstalledToolchain, find_toolchain, wanted


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A program with what runs it and what is fed to it."""

    program: Program
    found: InstalledToolchain
    inputs: tuple[ProgramInput, ...]

    def values(self, build: str) -> dict[str, str]:
        """Return the values of the names in the commands of the table."""
        program = self.program
        source = str(program.path.resolve())
        return {"source": source, "build": build, "entry": program.entry, "stem": program.path.stem}

    def describe(self) -> Iterator[str]:
        """Lines for the user: the commands and inputs of this program."""
        toolchain, values = self.found.toolchain, self.values("BUILD")
        yield f"{self.program.path}: {self.program.language}, {self.found.runtime}"
        if toolchain.compile:
            yield f"  {shlex.join(self.found.command(toolchain.compile, values))}"
        yield f"  {shlex.join(self.found.command(toolchain.run, values))} < {_names(self.inputs)}"


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """All jobs, and ``problems``: a line for each file that is not run."""

    jobs: tuple[ProgramJob, ...]
    problems: tuple[str, ...]
    sandbox: Sandbox
    limits: ProgramLimits
    repeat: int

    def describe(self) -> Iterator[str]:
        """Lines for the user: what will run, in which sandbox, and how often."""
        counts = Counter(f"{job.program.language} ({job.found.runtime})" for job in self.jobs)
        programs = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        pairs = sum(len(job.inputs) for job in self.jobs)
        yield f"programs: {programs}"
        yield f"runs: {pairs:,} pairs of program and input, each once to warm up and {self.repeat} times to measure"
        yield f"sandbox: {self.sandbox.description}"
        yield f"limits of a run: {self.limits}"


def make_plan(
    place: Path,
    patterns: Sequence[str],
    sandbox: Sandbox,
    python: str,
    languages: Sequence[str] = (),
    limits: ProgramLimits | None = None,
    repeat: int = 5,
) -> ProgramPlan:
    """Find the programs in a file or folder, their toolchains (``python`` for Python) and inputs. Nothing of them runs.

    Raises:
        DataError: there is no program, or none that can be run.
    """
    programs, problems = find_programs(place, languages)
    if not programs:
        raise DataError(_nothing(f"{place}: no program in {', '.join(languages or LANGUAGES)}", problems))
    toolchains = {name: find_toolchain(name, python) for name in dict.fromkeys(one.language for one in programs)}
    jobs = []
    for program in programs:
        found = toolchains[program.language]
        if found is None:
            problems.append(f"{program.path}: nothing here runs {program.language}; install {wanted(program.language)}")
            continue
        inputs = inputs_for(patterns, program.path)
        if not inputs:
            problems.append(f"{program.path}: no input; {', '.join(patterns)} matches no file")
            continue
        jobs.append(ProgramJob(program, found, tuple(inputs)))
    if not jobs:
        raise DataError(_nothing(f"{place}: no program can be run", problems))
    return ProgramPlan(tuple(jobs), tuple(problems), sandbox, limits or ProgramLimits(), repeat)


def _nothing(what: str, problems: Sequence[str]) -> str:
    more = f" and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    return f"{what} ({problems[0]}{more})" if problems else f"{what}; name another folder"


def _names(inputs: Sequence[ProgramInput]) -> str:
    shown = ", ".join(one.name for one in inputs[:5])
    return shown + (f" and {len(inputs) - 5:,} more" if len(inputs) > 5 else "")


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """A file that programs read on stdin; ``digest`` begins its SHA-1."""

    path: Path
    name: str
    digest: str


def inputs_for(patterns: Sequence[str], program: Path) -> list[ProgramInput]:
    """The inputs of a program, sorted by pattern and path.

    A pattern is a file, a folder (all files right in it) or a glob; ``{name}`` in it is the program's file name without
    its suffix.

    Raises:
        DataError: an input cannot be read.
    """
    found: dict[Path, ProgramInput] = {}
    for pattern in patterns:
        for path in _paths(pattern.replace("{name}", program.stem)):
            if path.resolve() not in found:
                found[path.resolve()] = ProgramInput(path, _short(path, pattern), digest_of(path))
    times = Counter(one.name for one in found.values())
    return [one if times[one.name] == 1 else replace(one, name=one.path.as_posix()) for one in found.values()]


def _paths(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
    if path.is_file():
        return [path]
    try:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 (a pattern may be absolute)
    except RecursionError:
        raise DataError(f"{pattern}: folders are nested too deeply; name a folder further in") from None
    return sorted(path for path in map(Path, found) if path.is_file())


def _short(path: Path, pattern: str) -> str:
    """A name that distinguishes the inputs of one pattern."""
    return f"{path.parent.name}/{path.name}" if "*" in str(Path(pattern).parent) else path.name


def digest_of(path: Path) -> str:
    """Return the beginning of a file's SHA-1.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()[:12]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the inputs") from None
