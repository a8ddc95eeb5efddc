"""What would be run: programs with their toolchains and inputs, how often, under which limits, in which sandbox."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import DataError

from .execute import Limits, Sandbox
from .inputs import Input, inputs_for
from .sources import Program, find_programs
from .toolchains import LANGUAGES, Found, find, wanted


@dataclass(frozen=True, slots=True)
class Job:
    """A program with what runs it and what is fed to it."""

    program: Program
    found: Found
    inputs: tuple[Input, ...]

    def values(self, build: str) -> dict[str, str]:
        """What stands for the names in the commands of the table."""
        program = self.program
        source = str(program.path.resolve())
        return {"source": source, "build": build, "entry": program.entry, "stem": program.path.stem}

    def told(self) -> Iterator[str]:
        """Its commands and inputs, for people."""
        toolchain, values = self.found.toolchain, self.values("BUILD")
        yield f"{self.program.path}: {self.program.language}, {self.found.runtime}"
        if toolchain.compile:
            yield f"  {shlex.join(self.found.command(toolchain.compile, values))}"
        yield f"  {shlex.join(self.found.command(toolchain.run, values))} < {_names(self.inputs)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All jobs, and ``problems``: a line for each file that is not run."""

    jobs: tuple[Job, ...]
    problems: tuple[str, ...]
    sandbox: Sandbox
    limits: Limits
    repeat: int

    def told(self) -> Iterator[str]:
        """In a few lines what is run, where and how often."""
        counts = Counter(f"{job.program.language} ({job.found.runtime})" for job in self.jobs)
        programs = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        pairs = sum(len(job.inputs) for job in self.jobs)
        yield f"programs: {programs}"
        yield f"runs: {pairs:,} pairs of program and input, each once to warm up and {self.repeat} times to measure"
        yield f"sandbox: {self.sandbox.told}"
        yield f"limits of a run: {self.limits}"


def make_plan(
    place: Path,
    patterns: Sequence[str],
    sandbox: Sandbox,
    python: str,
    languages: Sequence[str] = (),
    limits: Limits | None = None,
    repeat: int = 5,
) -> Plan:
    """Find the programs in a file or folder, their toolchains (``python`` for Python) and inputs. Nothing of them runs.

    Raises:
        DataError: there is no program, or none that can be run.
    """
    programs, problems = find_programs(place, languages)
    if not programs:
        raise DataError(_nothing(f"{place}: no program in {', '.join(languages or LANGUAGES)}", problems))
    toolchains = {name: find(name, python) for name in dict.fromkeys(one.language for one in programs)}
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
        jobs.append(Job(program, found, tuple(inputs)))
    if not jobs:
        raise DataError(_nothing(f"{place}: no program can be run", problems))
    return Plan(tuple(jobs), tuple(problems), sandbox, limits or Limits(), repeat)


def _nothing(what: str, problems: Sequence[str]) -> str:
    more = f" and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    return f"{what} ({problems[0]}{more})" if problems else f"{what}; name another folder"


def _names(inputs: Sequence[Input]) -> str:
    shown = ", ".join(one.name for one in inputs[:5])
    return shown + (f" and {len(inputs) - 5:,} more" if len(inputs) > 5 else "")
