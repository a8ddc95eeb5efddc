"""The bench file of a project: functions that make inputs of a given size, where examples from tests cannot grow.

A function ``bench_NAME(n)`` returns the function to call and its arguments, for inputs of about ``n`` items::

    def bench_parse(n):
        return shapes.parse, "x," * n
"""

from __future__ import annotations

import inspect
import runpy
import types
from collections.abc import Callable
from typing import Any

PREFIX = "bench_"
MakeInputs = Callable[[int], tuple[Any, ...]]


def load_bench(file: str) -> dict[str, MakeInputs | str]:
    """Run a bench file and return its functions by name; if it fails, every name has the reason instead."""
    try:
        space = runpy.run_path(file, run_name="rlm_bench")
    except BaseException as error:
        return _Failed(f"{file} cannot be run: {type(error).__name__}: {error}")
    return {name: one for name, one in space.items() if name.startswith(PREFIX) and callable(one)}


class _Failed(dict[str, "MakeInputs | str"]):
    """Gives one reason for every name."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def get(self, name: str, default: Any = None) -> Any:
        return self._reason


def target_of(made: Any) -> tuple[types.FunctionType, dict[str, Any]]:
    """The function that a function of the bench file asks for, without decorators, and its arguments by name.

    Raises:
        TypeError: it returned something else, or arguments that do not fit.
    """
    if not isinstance(made, tuple) or not made or not callable(made[0]):
        raise TypeError("a bench function must return a function and its arguments")
    called, *arguments = made
    target = called
    while hasattr(target, "__wrapped__"):
        target = target.__wrapped__
    if isinstance(target, types.MethodType):
        arguments = [target.__self__, *arguments]
        target = target.__func__
    elif isinstance(called, types.MethodType):
        arguments = [called.__self__, *arguments]
    if isinstance(target, type):
        arguments = [object.__new__(target), *arguments]
        target = vars(target).get("__init__")
    if not isinstance(target, types.FunctionType):
        raise TypeError("a bench function must name a function from Python code")
    return target, dict(inspect.getcallargs(target, *arguments))
