"""Numbers that can be computed from a text without running it: the targets of pretraining.

Syntax counts for every language with a grammar, the length of the bytecode for Python, parameters and
multiply-accumulates for a network. Compiling to bytecode runs nothing of the text.
"""

from __future__ import annotations

import dis
import os
import types
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import numpy.typing as npt

from rlm_core.source.languages import LANGUAGES
from rlm_core.source.syntax_counts import NAMES, structure

TARGETS = (*NAMES, "bytecode", "opcodes", "parameters", "macs")
_PYTHON = frozenset(name for name, entry in LANGUAGES.items() if entry.grammar == LANGUAGES["python"].grammar)


def synthetic_targets(texts: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
    """The targets of (canonical text, language) pairs, ``(texts, targets)``; NaN where one has no meaning."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return np.array(list(pool.map(_targets, texts, chunksize=500)), dtype=np.float32).reshape(-1, len(TARGETS))


def _targets(entry: tuple[str, str]) -> list[float]:
    text, language = entry
    values: npt.NDArray[np.float32] = structure(text, language)
    if LANGUAGES[language].grammar is None:
        values = np.full(len(NAMES), np.nan, np.float32)
    lengths = [np.nan, np.nan]
    if language in _PYTHON:
        lengths = _bytecode(text)
    return [*values.tolist(), *lengths, *_network(text, language)]


def _bytecode(text: str) -> list[float]:
    """log1p of the number of instructions and of distinct operations of all code in a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(text, "text", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return [np.nan, np.nan]
    total, kinds, pending = 0, set(), [code]
    while pending:
        current = pending.pop()
        operations = [instruction.opname for instruction in dis.get_instructions(current)]
        total += len(operations)
        kinds.update(operations)
        pending += [constant for constant in current.co_consts if isinstance(constant, types.CodeType)]
    return [float(np.log1p(total)), float(np.log1p(len(kinds)))]


def _network(text: str, language: str) -> list[float]:
    """log1p of the parameters and multiply-accumulates of a graph."""
    if language != "onnx":
        return [np.nan, np.nan]
    from rlm_core.errors import RlmError
    from rlm_core.source.onnx_graph import parse
    from rlm_core.source.onnx_graph.costs import costs, total

    try:
        found = total(costs(parse(text)))
    except RlmError:
        return [np.nan, np.nan]
    return [float(np.log1p(found.parameters)), float(np.log1p(found.macs))]
