"""Which functions of a folder get a wait or endless label: on the standard library nearly all labels should be true.

Input: a folder of Python files. Output: the functions with a label, and how many functions were read.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import RlmError
from rlm_core.queries.analysis import Analyser
from rlm_core.source.units import read_source
from rlm_core.types import CodeText, Prediction, WorkFacts
from rlm_lsp.rendering import labels

_LEFT_OUT = frozenset({"test", "tests", "idle_test", "site-packages", "__pycache__", "lib2to3"})


@dataclass(frozen=True, slots=True)
class Alarm:
    """A labelled function: where it is, its label, and the calls or loop that the label is about."""

    location: str
    unit: str
    label: str
    causes: tuple[str, ...]


def wait_label(work: WorkFacts | None, prediction: Prediction | None = None) -> str:
    """The wait part of a function's label; without a prediction no wait is too short to be shown."""
    if work is None:
        return ""
    stand_in = Prediction("call", "latency", None, {}, "", None, (), 0.0, False)
    return labels.wait_text(prediction or stand_in, work)


def standard_library() -> Path:
    """The standard library of the running interpreter."""
    return Path(sysconfig.get_path("stdlib"))


def alarms(folder: Path) -> tuple[list[Alarm], int]:
    """The labelled functions of a folder, and how many functions it has; tests are left out."""
    listed, count = [], 0
    for location, code, unit in _functions(folder):
        count += 1
        label = wait_label(code.work)
        if label and code.work is not None:
            lines = [f"{wait.call} ({wait.share:.0%})" for wait in code.work.waits]
            if code.work.endless is not None:
                text = code.text.splitlines()
                lines.append(text[code.work.endless].strip() if code.work.endless < len(text) else "?")
            listed.append(Alarm(location, unit, label, tuple(dict.fromkeys(lines))))
    return listed, count


def _functions(folder: Path) -> Iterator[tuple[str, CodeText, str]]:
    analyser = Analyser()
    for path in sorted(folder.rglob("*.py")):
        if _LEFT_OUT.intersection(path.relative_to(folder).parts):
            continue
        try:
            units = analyser.analyse(read_source(path), path)
        except RlmError:
            continue
        for analysed in units:
            if analysed.unit.kind == "function":
                location = f"{path.relative_to(folder)}:{analysed.unit.span.start_line + 1}"
                yield location, analysed.code, analysed.unit.qualname
