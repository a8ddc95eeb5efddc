"""Reports when calls begin and end, by code inserted into functions as their modules are imported (CPython 3.11).

Only functions that return are watched: a generator or coroutine would have to tell each resume. Lines, names,
signatures and documentation of a function stay as they are; byte-code caches of the modules are neither read nor
written.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from threading import get_ident
from types import CodeType, ModuleType
from typing import Any

from . import calibration_targets as subject
from .function_registry import Function, FunctionRegistry, Scope
from .latency import LatencyMeter
from .memory import MemoryMeter

_ON, _BEGIN, _END, _FAIL = "__rlm_on__", "__rlm_begin__", "__rlm_end__", "__rlm_fail__"


class Injector(MetaPathFinder):
    """Watches the functions of modules that are imported from now on, until it is stopped."""

    def __init__(self, scope: Scope, roster: FunctionRegistry, meter: LatencyMeter | MemoryMeter) -> None:
        self._scope, self._roster, self._meter = scope, roster, meter
        self._on = bytearray()
        self._failing: set[int] = set()
        # A name in builtins is found from every module and shows in the namespace of none.
        vars(builtins).update({_ON: self._on, _BEGIN: self._begin, _END: self._end, _FAIL: self._fail})
        roster.switch = self._switch

    def find(self) -> None:
        """Rewrite what is imported from now on."""
        sys.meta_path.insert(0, self)

    def subjects(self) -> list[tuple[Function, Callable[..., None]]]:
        """The functions of :mod:`.subject`, rewritten."""
        path, module = str(subject.__file__), subject.__name__
        space: dict[str, Any] = {"__name__": module}
        exec(self.rewritten(Path(path).read_bytes(), module, path), space)  # noqa: S102 - our own module
        by_name = {function.qualname: function for function in self._roster.functions}
        return [(by_name[call.__name__], space[call.__name__]) for call in subject.ALL]

    def stop(self) -> None:
        """Watch nothing any more; functions that were rewritten stay so and ask a flag that is off."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._on[:] = bytes(len(self._on))
        self._roster.switch = lambda function, on: None

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module as the other finders see it, with a loader that rewrites it."""
        if not self._scope.takes(name):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader:
                    spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
                return spec
        return None

    def compiled(self, source: bytes, module: str, path: str) -> CodeType:
        """The code of a file, whose functions tell when they begin and end if its module is measured."""
        if self._scope.takes(module):
            return self.rewritten(source, module, path)
        return compile(source, path, "exec", dont_inherit=True)

    def rewritten(self, source: bytes, module: str, path: str) -> CodeType:
        """The code of a module whose functions tell when they begin and end."""
        tree = _Rewriter(self, module, path).visit(ast.parse(source, path))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def function(self, module: str, qualname: str, path: str, line: int) -> Function:
        """Take a function in, when its module is rewritten."""
        function = self._roster.function(module, qualname, path, line, "function")
        while len(self._on) <= function.number:
            self._on.append(1)
        return function

    def _switch(self, function: Function, on: bool) -> None:
        self._on[function.number] = on

    def _begin(self, number: int) -> None:
        self._meter.begin(self._roster.functions[number], sys._getframe)

    def _end(self, number: int) -> None:
        failed = get_ident() in self._failing
        self._failing.discard(get_ident())
        self._meter.end(self._roster.functions[number], failed)

    def _fail(self) -> None:
        self._failing.add(get_ident())


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, injector: Injector) -> None:
        super().__init__(name, path)
        self._injector = injector

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        try:
            return self._injector.rewritten(source, fullname, self.path)
        except (SyntaxError, RecursionError):
            # Python allows twenty nested blocks, and ours are two of them: such a module is not measured.
            return self.source_to_code(source, self.path)


class _Rewriter(ast.NodeTransformer):
    """``if on: begin`` before each body, which is put into ``try`` with ``finally: if on: end``."""

    def __init__(self, injector: Injector, module: str, path: str) -> None:
        self._injector, self._module, self._path = injector, module, path
        self._prefix = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self._inside(node, f"{node.name}.")
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self._inside(node, f"{node.name}.<locals>.")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        qualname = self._prefix + node.name
        self._inside(node, f"{node.name}.<locals>.")
        if _is_generator(node):
            return node
        line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        number = self._injector.function(self._module, qualname, self._path, line).number
        documented = ast.get_docstring(node, clean=False) is not None
        head, body = node.body[:documented], node.body[documented:]
        if not body:
            return node
        calls = (f"{_BEGIN}({number})", f"{_FAIL}()", f"{_END}({number})")
        begin, fail, end = (ast.parse(f"if {_ON}[{number}]: {call}").body[0] for call in calls)
        failing = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [fail, ast.Raise()])
        watched = ast.Try([ast.Try(body, [failing], [], [])], [], [], [end])
        for added in (begin, fail, end, failing, watched, watched.body[0]):
            for part in ast.walk(added) if added in (begin, fail, end) else (added,):
                ast.copy_location(part, body[0])
        node.body = [*head, begin, watched]
        return node

    def _inside(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> None:
        outer, self._prefix = self._prefix, self._prefix + prefix
        self.generic_visit(node)
        self._prefix = outer


def _is_generator(node: ast.FunctionDef) -> bool:
    """Return whether a function is a generator; a ``yield`` in a nested function does not count."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(one))
    return False
