"""Functions put together at random: each trial comes to its end, to a fault of the program, or to a refusal."""

from __future__ import annotations

import ast
import copy
import csv
import inspect
import random
import time

import pytest
from rlm_core.source.work.analysis import analyse
from rlm_core.source.work.trial.values import Refused

from . import cases
from .running import run

_TREE = ast.parse(inspect.getsource(cases))
_FUNCTIONS = [node for node in _TREE.body if isinstance(node, ast.FunctionDef)]
_INSIDE = [inner for function in _FUNCTIONS for inner in ast.walk(function) if inner is not function]
_EXPRESSIONS = [node for node in _INSIDE if isinstance(node, ast.expr)]
_STATEMENTS = [node for node in _INSIDE if isinstance(node, ast.stmt)]
_PROGRAM_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, StopIteration, TypeError, ValueError,
    RuntimeError, csv.Error,
)  # fmt: skip


class _Mutation(ast.NodeTransformer):
    """Replaces some expressions and statements by others."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng, self._share = rng, share

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        is_value = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        if is_value and self._rng.random() < self._share:
            return copy.deepcopy(self._rng.choice(_EXPRESSIONS))
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef) and self._rng.random() < self._share:
            return copy.deepcopy(self._rng.choice(_STATEMENTS))
        return node


def _mutated(rng: random.Random) -> tuple[str, str] | None:
    """A function and its name; None where what was put together is no Python."""
    function = copy.deepcopy(rng.choice(_FUNCTIONS))
    changed = _Mutation(rng, rng.choice((0.01, 0.03, 0.1))).visit(function)
    try:
        text = ast.unparse(ast.fix_missing_locations(changed))
        ast.parse(text)
    except (AttributeError, SyntaxError, TypeError, ValueError):
        return None
    return text, function.name


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(4))
def test_mutated_functions_end(seed: int) -> None:
    rng = random.Random(seed)
    ran = 0
    for _ in range(150):
        mutated = _mutated(rng)
        if mutated is None:
            continue
        ran += 1
        start = time.thread_time()
        try:
            run(*mutated, samples=rng.random() < 0.3)
        except (Refused, *_PROGRAM_ERRORS):
            pass
        analyse(mutated[0])
        assert time.thread_time() - start < 5
    assert ran > 60
