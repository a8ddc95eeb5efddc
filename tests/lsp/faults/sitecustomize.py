"""Faults for tests, in every Python process that has this folder in its ``PYTHONPATH``; by the name of a function.

The analysis of ``no_facts`` fails, also the prediction of ``no_answer``, also from its text alone, and the reading of
files called ``unreadable.py``. Exceptions quote the code, as those of parsers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import rlm_core.cost.analysis as analysis
import rlm_core.inference.work_mixture as work_mixture
import rlm_core.queries.unit_facts as unit_facts
from rlm_core.inference.student import OnnxPredictor
from rlm_core.source.incremental import PythonFile, PythonReader
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, Prediction, Query

_analyse, _work_facts = analysis.analyse, analysis.work_facts
_predict, _read = OnnxPredictor.predict, PythonReader.read


def _recurse(text: str) -> None:
    _recurse(text)


def analyse(text: str, *arguments: Any, **more: Any) -> Any:
    if "def no_facts" in text:
        _recurse(text)
    return _analyse(text, *arguments, **more)


def work_facts(text: str, *arguments: Any, **more: Any) -> Any:
    if "def no_facts" in text:
        _recurse(text)
    return _work_facts(text, *arguments, **more)


def predict(
    self: OnnxPredictor, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]
) -> list[list[Prediction]]:
    for code in texts:
        if "def no_answer" in code.text:
            raise MemoryError(code.text)
    return _predict(self, texts, queries)


def read(self: PythonReader, parsed: ParsedSource, *arguments: Any, path: PurePath | None, **more: Any) -> PythonFile:
    if path is not None and path.name == "unreadable.py":
        raise KeyError(parsed.source)
    return _read(self, parsed, *arguments, path=path, **more)


for owner, name, fault in (
    (unit_facts, "analyse", analyse),
    (work_mixture, "work_facts", work_facts),
    (OnnxPredictor, "predict", predict),
    (PythonReader, "read", read),
):
    setattr(owner, name, fault)
