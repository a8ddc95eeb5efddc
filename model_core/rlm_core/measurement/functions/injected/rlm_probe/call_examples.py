"""Keeps a few examples of the arguments of each function as plain data, to call it again with larger ones later.

They are taken before a call runs, from its frame, and written to a separate file of the process, one line of JSON per
example. A function whose arguments are not plain data is given up after some attempts. Nothing is raised into the
program that is watched.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from time import perf_counter_ns
from types import CodeType, FrameType

from . import calibration_targets
from .function_registry import Function
from .plain_data import Encoded, NotPlainError, encode

FORMAT, SUFFIX = "rlm-examples-1", ".examples"
EXAMPLES = 4  # per function and process: the first, and those whose sizes differ from all before
_ATTEMPTS, _FAILURES = 24, 6
_NANOSECONDS = 30_000_000  # that may be spent on one function, in all of its attempts
_MOST_BYTES = 128 << 20  # of a file


class ExampleWriter:
    """Examples of the calls of one process, in a file of ``folder``.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, folder: Path, packages: Sequence[str]) -> None:
        self._packages = tuple(packages)
        path = folder / f"{os.getpid()}-{time.time_ns()}{SUFFIX}"
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        # Tests may put others in their place in every module, as pyfakefs does.
        self._write_bytes, self._close_file = os.write, os.close
        self._states: dict[Function, _State] = {}
        self._left = _MOST_BYTES
        self._write({"format": FORMAT, "packages": self._packages, "path": sys.path, "folder": str(Path.cwd())})

    def take(self, function: Function, frame: FrameType) -> None:
        """A call of a function begins in a frame: keep its arguments if they are worth it."""
        state = self._states.get(function)
        if state is None:
            state = self._states[function] = _State()
            state.is_done = function.module == calibration_targets.__name__
        if state.is_done or self._file is None:
            return
        began = perf_counter_ns()
        try:
            state.attempts += 1
            arguments = arguments_of(frame)
            size = _coarse_size(arguments)
            if size not in state.sizes:
                encoded = encode(arguments, self._packages)
                state.sizes.add(size)
                self._keep(function, arguments=encoded)
        except NotPlainError as error:
            state.failures += 1
            state.reason = str(error)
        except Exception as error:  # whatever a value does when it is read: the program must not notice
            state.failures += 1
            state.reason = type(error).__name__
        state.spent += perf_counter_ns() - began
        state.is_done = (
            len(state.sizes) >= EXAMPLES
            or state.failures >= _FAILURES
            or state.attempts >= _ATTEMPTS
            or state.spent > _NANOSECONDS
        )

    def finish(self) -> None:
        """Write why the functions without an example have none, and nothing any more."""
        for function, state in self._states.items():
            if state.reason and not state.sizes:
                self._keep(function, why=state.reason)
        self.close()

    def close(self) -> None:
        """Write nothing any more, as in a forked child."""
        if self._file is not None:
            self._close_file(self._file)
            self._file = None

    def _keep(self, function: Function, **about: Encoded | str) -> None:
        self._write({
            "module": function.module, "qualname": function.qualname, "file": function.file, "line": function.line,
            "kind": function.kind, **about,
        })  # fmt: skip

    def _write(self, line: dict[str, object]) -> None:
        if self._file is None:
            return
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self._left -= len(data)
        if self._left < 0:
            self.close()
            return
        try:
            while data:
                data = data[self._write_bytes(self._file, data) :]
        except OSError:
            self.close()


class _State:
    __slots__ = ("attempts", "failures", "is_done", "reason", "sizes", "spent")

    def __init__(self) -> None:
        self.attempts = self.failures = self.spent = 0
        self.is_done = False
        self.reason = ""
        self.sizes: set[tuple[int, ...]] = set()


def parameters_of(code: CodeType) -> list[str]:
    """Return the names of the parameters of a function's code, in the order of its variables."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return list(code.co_varnames[:count])


def arguments_of(frame: FrameType) -> dict[str, object]:
    """Return the arguments of a frame that has just begun, by the names of the parameters."""
    values = frame.f_locals
    return {name: values[name] for name in parameters_of(frame.f_code) if name in values}


_SIZED = (str, bytes, bytearray, list, tuple, set, frozenset, dict)


def _coarse_size(arguments: dict[str, object]) -> tuple[int, ...]:
    """Return the sizes of arguments as powers of two."""
    found = []
    for value in arguments.values():
        if type(value) in _SIZED:
            found.append(len(value).bit_length())  # type: ignore[arg-type]
        elif type(value) is int:
            found.append(value.bit_length())
        else:
            found.append(-1)
    return tuple(found)
