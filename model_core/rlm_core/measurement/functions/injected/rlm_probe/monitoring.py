"""Reports when calls begin and end, by ``sys.monitoring`` (CPython 3.12 on).

One tool looks at the first start of every code object and finds the functions to measure; it is never asked again
about the same code. The other has events on those functions alone, which are taken away when a function is switched
off. Ends by an exception (``PY_UNWIND``) and resumptions by one (``PY_THROW``) cannot be had for single functions, so
they are filtered by the identity of the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from time import perf_counter_ns
from types import CodeType
from typing import Protocol

from . import calibration_targets as subject
from .function_registry import Function, FunctionRegistry, Scope, kind_of
from .latency import Clock, LatencyMeter
from .memory import MemoryMeter

NAME = "rlm-lsp"
_TOOLS = (2, 3, 4)  # profiler first; 0, 1 and 5 belong to debuggers, coverage and optimizers


class _Events(Protocol):
    PY_START: int
    PY_RESUME: int
    PY_RETURN: int
    PY_YIELD: int
    PY_UNWIND: int
    PY_THROW: int


class _Monitoring(Protocol):
    """The part of ``sys.monitoring`` that is used here; Python 3.11 lacks the module."""

    DISABLE: object
    events: _Events

    def get_tool(self, tool: int) -> str | None: ...
    def use_tool_id(self, tool: int, name: str) -> None: ...
    def free_tool_id(self, tool: int) -> None: ...
    def set_events(self, tool: int, events: int) -> None: ...
    def set_local_events(self, tool: int, code: CodeType, events: int) -> None: ...
    def register_callback(self, tool: int, event: int, callback: Callable[..., object] | None) -> object: ...


class Monitor:
    """Calls the meter for the functions in scope until it is stopped.

    Raises:
        RuntimeError: other tools hold all the places that ``sys.monitoring`` has.
    """

    def __init__(self, scope: Scope, roster: FunctionRegistry, meter: LatencyMeter | MemoryMeter) -> None:
        self._api: _Monitoring = vars(sys)["monitoring"]
        self._scope, self._roster, self._meter = scope, roster, meter
        self._functions: dict[int, Function] = {}
        self._is_stopped = False
        events = self._api.events
        self._local = events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD
        free = [tool for tool in _TOOLS if self._api.get_tool(tool) is None][:2]
        if len(free) < 2:
            raise RuntimeError("other tools hold the places of sys.monitoring; run the tests without a profiler")
        self._finder, self._watcher = free
        for tool in free:
            self._api.use_tool_id(tool, NAME)
        register = self._api.register_callback
        register(self._watcher, events.PY_START, self._on_begin)
        register(self._watcher, events.PY_RESUME, self._on_resume)
        register(self._watcher, events.PY_RETURN, self._on_end)
        register(self._watcher, events.PY_YIELD, self._on_end)
        register(self._watcher, events.PY_UNWIND, self._on_unwind)
        register(self._watcher, events.PY_THROW, self._on_throw)
        register(self._finder, events.PY_START, self._on_first_start)
        self._api.set_events(self._watcher, events.PY_UNWIND | events.PY_THROW)
        roster.switch = self._switch

    def find(self) -> None:
        """Look for functions to measure among all that starts from now on."""
        self._api.set_events(self._finder, self._api.events.PY_START)

    def add(self, code: CodeType, module: str) -> Function:
        """Measure the function of a code object."""
        function = self._roster.function(module, code.co_qualname, code.co_filename, code.co_firstlineno, kind_of(code))
        # The object is kept, so that no other code can have its identity.
        function.codes.append(code)
        self._functions[id(code)] = function
        if function.is_on:
            self._api.set_local_events(self._watcher, code, self._local)
        return function

    def subjects(self) -> list[tuple[Function, Callable[..., None]]]:
        """The functions of :mod:`.subject`, watched."""
        return [(self.add(call.__code__, subject.__name__), call) for call in subject.ALL]

    def compiled(self, source: bytes, module: str, path: str) -> CodeType:
        """The code of a file; its functions are found when they start."""
        return compile(source, path, "exec", dont_inherit=True)

    def stop(self) -> None:
        """Take all events away; a child that is forked afterwards does so once more."""
        if self._is_stopped:
            return
        self._is_stopped = True
        for tool in (self._finder, self._watcher):
            self._api.set_events(tool, 0)
        for function in self._functions.values():
            for code in function.codes:
                self._api.set_local_events(self._watcher, code, 0)
        for tool in (self._finder, self._watcher):
            self._api.free_tool_id(tool)

    def _switch(self, function: Function, on: bool) -> None:
        for code in function.codes:
            self._api.set_local_events(self._watcher, code, self._local if on else 0)

    def _on_first_start(self, code: CodeType, offset: int, *, clock: Clock = perf_counter_ns) -> object:
        if code.co_flags & CO_OPTIMIZED and code.co_name[0] != "<" and id(code) not in self._functions:
            module = sys._getframe(1).f_globals.get("__name__")
            # What is compiled from a string has no text to predict from.
            if isinstance(module, str) and self._scope.takes(module) and code.co_filename[0] != "<":
                began = clock()
                function = self.add(code, module)
                self._meter.ran_past(clock() - began)
                if function.is_on:
                    self._meter.begin(function, sys._getframe)
        return self._api.DISABLE

    def _on_begin(self, code: CodeType, offset: int) -> None:
        self._meter.begin(self._functions[id(code)], sys._getframe)

    def _on_resume(self, code: CodeType, offset: int) -> None:
        self._meter.begin(self._functions[id(code)])

    def _on_end(self, code: CodeType, offset: int, value: object) -> None:
        self._meter.end(self._functions[id(code)])

    def _on_unwind(self, code: CodeType, offset: int, error: BaseException) -> None:
        function = self._functions.get(id(code))
        if function is not None:
            self._meter.end(function, True)
        else:
            self._meter.unwound += 1

    def _on_throw(self, code: CodeType, offset: int, error: BaseException) -> None:
        function = self._functions.get(id(code))
        if function is not None and function.is_on:
            self._meter.begin(function)
