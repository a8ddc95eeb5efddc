"""``rlm-lsp check``: the editor's findings on the command line, for CI.

The exit status is 1 if any finding is at least as severe as ``--fail-on``, and 2 if a named path cannot be read.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TextIO

import click
from rlm_core import RlmError, loading
from rlm_core.files import atomic_write
from rlm_core.inference.predictor import Predictor

from rlm_lsp.findings import baseline as baselines
from rlm_lsp.findings.baseline import Baseline
from rlm_lsp.findings.checked_files import CheckedFiles, find_files
from rlm_lsp.findings.checker import Checker
from rlm_lsp.findings.file_reader import FileReader, ReadFile
from rlm_lsp.findings.finding import SEVERITIES
from rlm_lsp.findings.formats import WRITERS, Format, LocatedFinding, committed_foot, fails
from rlm_lsp.rendering import console
from rlm_lsp.rendering.console import counted
from rlm_lsp.rendering.finding_messages import committed_note
from rlm_lsp.settings.model import Severity
from rlm_lsp.sources import SourceFile

from . import options
from .options import PATH, write_errors
from .workers import Note, batches_for, results


@dataclass(slots=True)
class _Tally:
    severities: Counter[Severity] = field(default_factory=Counter)
    failed: int = 0
    known: int = 0


@click.command()
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1)
@click.option(
    "--diff",
    metavar="REV",
    help="Check only units that changed since a git revision, and list regressions as information.",
)
@options.output_format("text", "json", "markdown", "sarif", "github", "junit")
@click.option("--output", metavar="FILE", type=PATH, help="File for the findings.", show_default="stdout")
@click.option("--baseline", metavar="FILE", type=PATH, help="Known findings, which are not reported.")
@click.option("--update-baseline", is_flag=True, help="Write all current findings to the baseline and report none.")
@click.option(
    "--fail-on",
    type=click.Choice(["information", "warning", "error"]),
    default="warning",
    help="Lowest severity that makes the exit status 1.",
)
@click.option(
    "--confidence",
    metavar="P",
    type=click.FloatRange(0.5, 0.99),
    help="Report a budget that is exceeded with at least this probability; overrides the settings.",
)
@click.option("--exclude", metavar="GLOB", multiple=True, help="Files to skip; repeatable.")
@options.model
@options.threads
@options.jobs
@options.no_measured
@options.strict
@options.cpu_scale
def command(
    paths: tuple[Path, ...],
    diff: str | None,
    form: Format,
    output: Path | None,
    baseline: Path | None,
    update_baseline: bool,
    fail_on: Severity,
    confidence: float | None,
    exclude: tuple[str, ...],
    model: str,
    threads: int,
    jobs: int,
    no_measured: bool,
) -> None:
    """Check units against their budgets; the exit status is 1 if a cost is over its budget.

    Regressions, faster growth, loops that may not end and waits in loops are information and do not change the exit
    status, unless you pass --fail-on information.

    The same files, revision, model and settings always give the same findings, in the same order.

    Without PATH, check the working directory. Write budgets in comments above units (rlm: latency < 1 ms), or by file
    glob in pyproject.toml or rlm-lsp.toml.
    """
    if update_baseline and baseline is None:
        raise RlmError("check: --update-baseline needs a file; add --baseline FILE")
    if update_baseline and diff is not None:
        raise RlmError("check: --update-baseline with --diff would drop all other findings; leave out one of the two")
    started = time.perf_counter()
    known = Baseline() if update_baseline or baseline is None else Baseline.read(baseline)
    checked = find_files(paths or (Path(),), exclude, diff)
    make = partial(_file_reader, checked, confidence, diff or "HEAD", no_measured)

    def read(sources: Sequence[SourceFile]) -> Generator[ReadFile]:
        processes, batches = batches_for(sources, jobs)
        yield from results(make, batches, processes, _lost, console.note)

    def load() -> Predictor:
        return loading.load_corrected(model, threads=threads, stored=True)

    checker = Checker(checked, load, read=read)
    tally = _Tally()
    with ExitStack() as stack:
        stack.enter_context(console.failures())
        findings: Iterator[LocatedFinding] = checker.run(stack.enter_context(console.progress("checking")))
        if update_baseline and baseline is not None:
            kept = baselines.write(baseline, ((entry.location.name, entry.finding) for entry in findings))
            console.note(f"{baseline}: {counted(kept, 'known finding')} written")
        else:
            # An error of the model must come before the first line of output.
            first = next(findings, None)
            findings = chain(() if first is None else (first,), findings)
            target: TextIO = sys.stdout
            if output is not None:
                stack.enter_context(write_errors(output))
                written = stack.enter_context(atomic_write(output))
                target = stack.enter_context(written.open("w", encoding="utf-8", errors="replace"))
            for piece in WRITERS[form](_unknown(findings, known, tally, fail_on), fail_on):
                target.write(piece)
            target.write(committed_foot(form, checker.committed))
    _summarise(checker, tally, diff, with_findings=not update_baseline, seconds=time.perf_counter() - started)
    raise click.exceptions.Exit(2 if checker.errors else int(tally.failed > 0))


def _file_reader(
    checked: CheckedFiles, confidence: float | None, revision: str, no_measured: bool, note: Note
) -> FileReader:
    return FileReader(checked, confidence, revision, options.known_measurements(off=no_measured, note=note))


def _lost(source: SourceFile, reason: str) -> ReadFile:
    return ReadFile(source, error=f"{source.path}: the process that read it died ({reason}); exclude the file")


def _unknown(
    findings: Iterable[LocatedFinding], known: Baseline, tally: _Tally, fail_on: Severity
) -> Iterator[LocatedFinding]:
    """The findings that are not in the baseline; counts all."""
    for located in findings:
        if known.takes(located.fingerprint):
            tally.known += 1
            continue
        tally.severities[located.finding.severity] += 1
        tally.failed += fails(located.finding, fail_on)
        yield located


def _summarise(checker: Checker, tally: _Tally, diff: str | None, *, with_findings: bool, seconds: float) -> None:
    parts = [f"{counted(checker.files, 'file')}, {counted(checker.with_budget, 'unit')} with a budget"]
    if diff is not None:
        rest = checker.compared - checker.slower - checker.faster
        changes = f"{checker.slower:,} slower, {checker.faster:,} faster, {rest:,} unchanged or unknown"
        parts.append(f"{checker.compared:,} compared with {diff}: {changes}")
    by_severity = [counted(n, severity) for severity in reversed(SEVERITIES) if (n := tally.severities[severity])]
    if with_findings:
        new = sum(tally.severities.values())
        parts.append(counted(new, "finding") + (f" ({', '.join(by_severity)})" if new else ""))
    if tally.known:
        parts.append(f"{tally.known:,} known")
    if checker.committed:
        parts.append(committed_note(checker.committed))
    if checker.errors:
        parts.append(f"{counted(checker.errors, 'path')} failed")
    console.note(f"{'; '.join(parts)}; {seconds:.1f} s")
    for problem in checker.settings.problems:
        console.note(problem)
    for reason, number in checker.abstained.most_common(3):
        console.note(f"{counted(number, 'prediction')} missing: {reason}")
    for device in checker.unknown_devices:
        console.note(f"a configured budget has no effect: the model does not know the device {device!r}")
    for path, glob in checker.unmatched_globs():
        console.note(f"{path}: the budgets of {glob!r} have no effect: no file matches; check the glob")
    if not checker.with_budget and diff is None and checker.files:
        console.note("no budget found; write `rlm: latency < 1 ms` above a function, or globs in pyproject.toml")
