"""``rlm-lsp check PATH...``: the editor's findings on the command line, for CI.

The exit status is 1 with findings as severe as ``--fail-on`` or more, 2 when a path that was named cannot be read.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TextIO

from rlm_core import RlmError
from rlm_core.inference.predictor import Predictor

from rlm_lsp.findings import baseline
from rlm_lsp.findings.baseline import Baseline
from rlm_lsp.findings.checked_files import find_files
from rlm_lsp.findings.checker import Checker
from rlm_lsp.findings.finding import SEVERITIES, Severity
from rlm_lsp.findings.formats import WRITERS, Format, LocatedFinding, fails
from rlm_lsp.rendering import console


@dataclass(frozen=True, slots=True)
class Options:
    """What the options of ``rlm-lsp check`` say; see their help."""

    form: Format = "text"
    diff: str | None = None
    baseline: Path | None = None
    update_baseline: bool = False
    fail_on: Severity = "warning"
    output: Path | None = None
    exclude: tuple[str, ...] = ()
    confidence: float | None = None


@dataclass(slots=True)
class _Tally:
    severities: Counter[Severity] = field(default_factory=Counter)
    failed: int = 0
    known: int = 0


def check_paths(paths: Sequence[Path], options: Options, load: Callable[[], Predictor]) -> int:
    """Report the findings of all units below ``paths`` and return the exit status.

    ``load`` gives the predictor; it is called when there is something to ask.

    Raises:
        RlmError: the revision, the baseline, the output or the model cannot be used.
    """
    if options.update_baseline and options.baseline is None:
        raise RlmError("check: --update-baseline needs a file; add --baseline FILE")
    if options.update_baseline and options.diff is not None:
        raise RlmError("check: --update-baseline with --diff would forget all other findings; leave one away")
    started = time.perf_counter()
    known = Baseline() if options.update_baseline or options.baseline is None else Baseline.read(options.baseline)
    checked = find_files(paths, options.exclude, options.diff)
    checker = Checker(checked, load, options.confidence, options.diff or "HEAD")
    tally = _Tally()
    with ExitStack() as stack:
        found: Iterator[LocatedFinding] = checker.run(stack.enter_context(console.progress("checking")))
        if options.update_baseline and options.baseline is not None:
            kept = baseline.write(options.baseline, ((entry.location.name, entry.finding) for entry in found))
            console.note(f"{options.baseline}: {_count(kept, 'finding')} kept as known")
        else:
            # What goes wrong with the model does so before anything is written.
            first = next(found, None)
            found = chain(() if first is None else (first,), found)
            target = sys.stdout if options.output is None else stack.enter_context(_opened(options.output))
            for piece in WRITERS[options.form](_new(found, known, tally, options.fail_on), options.fail_on):
                target.write(piece)
    _summary(checker, tally, options, time.perf_counter() - started)
    return 2 if checker.errors else int(tally.failed > 0)


def _new(
    findings: Iterable[LocatedFinding], known: Baseline, tally: _Tally, fail_on: Severity
) -> Iterator[LocatedFinding]:
    """The findings that no baseline knows, counted as they pass."""
    for located in findings:
        if known.takes(located.fingerprint):
            tally.known += 1
            continue
        tally.severities[located.finding.severity] += 1
        tally.failed += fails(located.finding, fail_on)
        yield located


def _opened(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8", errors="replace")
    except OSError as error:
        raise RlmError(f"{path}: cannot be written ({error.strerror}); check the path") from None


def _summary(checker: Checker, tally: _Tally, options: Options, seconds: float) -> None:
    parts = [f"{_count(checker.files, 'file')}, {_count(checker.with_budget, 'unit')} with a budget"]
    if options.diff is not None:
        parts.append(f"{checker.compared:,} compared with {options.diff}")
    told = [_count(number, severity) for severity in reversed(SEVERITIES) if (number := tally.severities[severity])]
    new = sum(tally.severities.values())
    if not options.update_baseline:
        parts.append(f"{_count(new, 'finding')}" + (f" ({', '.join(told)})" if new else ""))
    if tally.known:
        parts.append(f"{tally.known:,} known")
    if checker.errors:
        parts.append(f"{_count(checker.errors, 'path')} failed")
    console.note(f"{'; '.join(parts)}; {seconds:.1f} s")
    for problem in checker.settings.problems:
        console.note(problem)
    for reason, number in checker.abstained.most_common(3):
        console.note(f"{_count(number, 'answer')} missing: {reason}")
    for device in checker.unknown_devices:
        console.note(f"a configured budget has no effect: the model does not know the device {device!r}")
    if not checker.with_budget and options.diff is None and checker.files:
        console.note("no budget was found; write `rlm: latency < 1 ms` above a function, or globs in pyproject.toml")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 or noun == 'information' else 's'}"
