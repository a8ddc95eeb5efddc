"""Registers the measured functions and decides when each is watched.

At most ``calls`` outermost calls of a function are taken a test; then it is switched off until the next test. A
function that many tests reach sleeps ever longer between them (every second test, every fourth, ...), so that the whole
suite has its say and the cost of watching fades.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from .input_sizes import InputSizes

TESTS_A_LEVEL = 10  # after so many tests that reached a function, it sleeps twice as long between tests
_GENERATORS = (
    (inspect.CO_ASYNC_GENERATOR, "async generator"),
    (inspect.CO_COROUTINE, "coroutine"),
    (inspect.CO_GENERATOR | inspect.CO_ITERABLE_COROUTINE, "generator"),
)
_TESTS = frozenset({"tests", "test", "conftest"})


Call = tuple[int, int, int, int]
"""Nanoseconds, what measuring cost among them; events of other taken calls, of recursive ones, exceptions of others."""
Sizes = dict[str, float]
"""The sizes of a call's inputs by name."""
GetFrame = Callable[[int], FrameType]
UNSIZED: Sizes = {}


class Function:
    """A function of the measured packages and what was seen of it since the last test ended.

    ``kind`` is function, generator, coroutine or async generator; the latter three are measured a resume at a time.
    ``raw`` are calls of which the costs of measuring are still to be taken off to make ``samples``; ``sizes`` are those
    of the same calls. ``inputs`` are known from the first call on.
    """

    __slots__ = (
        "codes",
        "exceptions",
        "file",
        "has_inputs",
        "inputs",
        "is_on",
        "kind",
        "line",
        "module",
        "number",
        "qualname",
        "raw",
        "recursive",
        "samples",
        "sizes",
        "taken",
        "tests",
        "threads",
    )

    def __init__(self, number: int, module: str, qualname: str, file: str, line: int, kind: str) -> None:
        self.number, self.module, self.qualname, self.file, self.line = number, module, qualname, file, line
        self.kind = kind
        self.codes: list[CodeType] = []
        self.is_on = True
        self.taken = self.tests = self.exceptions = 0
        self.raw: list[Call] = []
        self.samples = array("q")
        self.sizes: list[Sizes] = []
        self.inputs: InputSizes | None = None
        self.has_inputs = True  # as far as that is known
        self.recursive = self.threads = False

    def sizes_of(self, frame: FrameType) -> Sizes:
        """The sizes of the inputs of a call that begins, from its frame."""
        inputs = self.inputs
        if inputs is None:
            inputs = self.inputs = InputSizes(frame.f_code)
            self.has_inputs = bool(inputs)
            if not inputs:
                return UNSIZED
        values = frame.f_locals
        sizes = inputs.of(values)
        if type(values) is dict:
            # Up to Python 3.12 the frame keeps this copy, and would hold what the function lets go.
            values.clear()
        return sizes

    def forget(self) -> None:
        """Forget the calls that were seen."""
        self.raw.clear()
        self.sizes.clear()
        del self.samples[:]
        self.exceptions = 0


class Scope:
    """The modules that are measured: those of ``packages`` (dotted names too) that are not tests themselves."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = tuple(packages)
        self._first = frozenset(name.partition(".")[0] for name in packages)

    def takes(self, module: str) -> bool:
        """Return whether the functions of a module are measured."""
        if module.partition(".")[0] not in self._first:
            return False
        for package in self._packages:
            if module == package or module.startswith(f"{package}."):
                parts = module[len(package) + 1 :].split(".")
                last = parts[-1]
                return not (_TESTS.intersection(parts) or last.startswith("test_") or last.endswith("_test"))
        return False


class FunctionRegistry:
    """The functions found so far and the periods: one before the first test, then one a test."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.period = 0
        self.functions: list[Function] = []
        self.touched: list[Function] = []
        self.switch: Callable[[Function, bool], None] = _switch_nothing
        self._by_place: dict[tuple[str, int, str], Function] = {}
        self._waking: dict[int, list[Function]] = {}

    def function(self, module: str, qualname: str, file: str, line: int, kind: str) -> Function:
        """The function at a place, made when it is first seen; a module that is loaded twice has it once."""
        key = (file, line, qualname)
        found = self._by_place.get(key)
        if found is None:
            found = self._by_place[key] = Function(len(self.functions), module, qualname, file, line, kind)
            self.functions.append(found)
        return found

    def begin(self) -> None:
        """A test begins: functions whose time has come are watched again."""
        self.period += 1
        for function in self._waking.pop(self.period, ()):
            if not function.is_on:
                function.is_on = True
                self.switch(function, True)

    def end(self) -> list[Function]:
        """A test has ended: the functions that were taken in it; their samples are the caller's to fetch."""
        touched, self.touched = self.touched, []
        for function in touched:
            function.tests += 1
            function.taken = 0
            gap = 1 << (function.tests // TESTS_A_LEVEL)
            if gap > 1:
                self.off(function)
            if not function.is_on:
                self._waking.setdefault(self.period + gap, []).append(function)
        return touched

    def off(self, function: Function) -> None:
        """No more of a function in this test."""
        if function.is_on:
            function.is_on = False
            self.switch(function, False)


def kind_of(code: CodeType) -> str:
    """``function``, or what kind of generator or coroutine a code object makes."""
    return next((kind for flag, kind in _GENERATORS if code.co_flags & flag), "function")


def _switch_nothing(function: Function, on: bool) -> None:
    """Until a watcher has taken over, there is nothing to switch."""
