"""What calls of functions and classes cost whose text is known: their bodies are read with the arguments."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from rlm_core.boundary import absorb
from rlm_core.types import CauseKind

from .closures import bind_around, grow_around
from .comprehensions import without_end
from .concurrency import ended
from .domain import object_sizes
from .domain.folding import MISSING
from .domain.meter import ALWAYS, Meter, PendingCause, scaled
from .domain.quantities import ONE, ZERO, Quantity, Range, constant, mixed, of_size
from .domain.values import NONE, UNKNOWN, Entries, Value
from .expressions import Expressions
from .frames import Frame, Recursive, TooComplex, is_one_function, joined
from .library.unit_costs import primitive, seconds
from .parameters import assumed, bind_arguments, defaults_of, is_abstract, is_method
from .recursion import recurrence
from .recursion_moves import SYMBOL
from .recursion_paths import most_calls
from .recursion_results import results_per_result
from .recursion_search import takes_back
from .recursion_syntax import base_share, changing_parameters, checks, ends_of, filled_list, is_cached
from .scope import Definition, Scope
from .syntax import Function, called_name, data_fields, parsed_class, parsed_function

_MOST_INLINED = 6  # depth
_PROPERTY = re.compile(r"\s*@(?:functools\.)?(?:cached_)?property\b")
_CALLEE_SHARE = 3  # of the budget that is left
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.FloorDiv: "__floordiv__",
    ast.Mod: "__mod__", ast.Pow: "__pow__", ast.MatMult: "__matmul__", ast.BitAnd: "__and__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
_EVEN_BASE = 0.5  # of the calls of a recursion that calls itself several times
_KEPT_RESULT_BYTES = 150.0  # of a result that a cache keeps, with its arguments
_SIZED = frozenset({"list", "tuple", "str", "set", "dict", "unknown"})


class FunctionBodies(Expressions):
    """Reads the bodies of called functions; statements are left to a subclass."""

    @abstractmethod
    def call_value(
        self, target: Value, args: list[Value], keywords: dict[str, Value], name: str, receiver: Value | None = None
    ) -> Value:
        """Call a value."""

    @abstractmethod
    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in the current frame."""

    def operation(self, op: ast.operator, left: Value, right: Value) -> Value:
        """A binary operation; one of an object of the program is a call of its method."""
        if left.kind == "object" and isinstance(left.payload, dict):
            method = _OPERATORS[type(op)]
            definition = self.frame.scope.function(method, left.name, self.frame.qualname)
            if definition is not None and not self._is_open(definition):
                return self.call_value(Value("user-function", payload=definition), [right], {}, method, left)
        return super().operation(op, left, right)

    def _is_open(self, definition: Definition) -> bool:
        """Whether a function is being read: a call of its name on another object delegates, and is not recursion."""
        node = parsed_function(definition.text)
        return any(frame.node is node for frame in self.open)

    def _construct(self, target: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
        attributes: dict[str, Value] = {}
        instance = Value("object", name=target.name, payload=attributes)
        definition = self.frame.scope.function("__init__", target.name, self.frame.qualname)
        fields = self._fields_of(target.name) if definition is None else None
        self.meter.spend(primitive("object" if definition is None and fields is None else "object.init"))
        if definition is not None:
            self._call_user(Value("user-function", payload=definition), args, keywords, instance)
        elif fields is not None:
            given = dict(zip(fields, args, strict=False)) | keywords
            for name, default in fields.items():
                self.meter.spend(primitive("store.attribute"))
                attributes[name] = replace(given[name], bytes=ZERO) if name in given else self.value(default)
        held = constant(object_sizes.instance(len(attributes) or len(args) + len(keywords)))
        # Its attributes keep what they are bound to: mostly the arguments.
        own = ZERO
        for value in (*attributes.values(), *args, *keywords.values()):
            own = own + value.bytes
        return replace(instance, bytes=held + own)

    def _call_user(
        self, target: Value, args: list[Value], keywords: dict[str, Value], receiver: Value | None, name: str = ""
    ) -> Value:
        """Read the body of a function of the program; ``name`` is what the call is written as."""
        definition = self.definition(target)
        if definition is None:
            self.meter.miss()
            return UNKNOWN
        node, scope, qualname, parent = definition
        self.meter.spend(primitive("call.function") + len(keywords) * primitive("call.keyword"))
        if node.args.vararg is not None:
            self.meter.spend(seconds("build.tuple", constant(max(len(args) - len(node.args.args), 0))))
        if is_abstract(node):
            # A subclass defines what runs.
            self.meter.miss()
            return UNKNOWN
        caller = self.frame
        active = next((frame for frame in reversed(self.open) if _is_frame_of(frame, definition)), None)
        if is_method(node) and (receiver is not None or parent is None):
            args = [receiver if receiver is not None else Value("unknown", name="self"), *args]
        names = bind_arguments(node, args, keywords)
        if active is not None:
            if not _calls_itself(active, name or target.name, args, is_direct=active is caller):
                self.meter.miss()
                return UNKNOWN
            share = self._share_in(active)
            # How many values a `*args` has left is not known; and a method, or a function inside a function, may be
            # another one in this call: of an object of a subclass, or of what was bound to its name meanwhile.
            is_certain = node.args.vararg is None and self._is_of_functions(active)
            share = share if is_certain else (0.0, share[1], share[2])
            times = ONE
            for loop in active.loops:
                times = times * loop.trips
            active.recursive.append(
                Recursive(names, share, times, active is caller, active.given, takes_back(active.node))
            )
            # A function that takes a container usually returns one of about the same size.
            sized = next((value for value in names.values() if value.size is not None and value.kind in _SIZED), None)
            return Value(size=sized.size) if sized is not None else UNKNOWN
        if len(self.open) > _MOST_INLINED:
            self.meter.miss()
            return UNKNOWN
        frame = Frame(scope, qualname, node, names, parent, receiver, caller.line, caller.depth + 1)
        frame.entered = self._share_here()
        # A callee that takes more than its share is not understood; what follows it still is.
        kept, loop_depth = self.left - self.left // _CALLEE_SHARE, self.loop_depth
        self.left //= _CALLEE_SHARE
        try:
            self.bind_defaults(frame)
            result, body = self.measured(frame)
        except Exception as error:
            if not isinstance(error, TooComplex):
                if not self.open:
                    raise
                # A fault of the analysis costs the caller what this call costs, not all its facts.
                absorb("the analysis of a called function", error)
            self.left, self.frame, self.loop_depth = kept, caller, loop_depth
            self.meter.miss()
            self.opaque += 1
            return UNKNOWN
        self.left += kept
        if body.endless is not None:
            body.endless = (caller.line, body.endless[1])
        self.meter.add(body, held=caller.held)
        self.meter.hold(caller.held)
        if receiver is not None and node.args.args:
            self.left_in_receiver = frame.filled.get(node.args.args[0].arg, ZERO)
        return result

    def _fields_of(self, name: str) -> dict[str, ast.expr | None] | None:
        """The fields of a dataclass or named tuple of the file, with their defaults."""
        text = self.frame.scope.class_text(name)
        node = parsed_class(text) if text is not None else None
        return data_fields(node) if node is not None else None

    def property_of(self, base: Value, name: str) -> Value | None:
        """What a property of the program's own classes returns; spends what it costs."""
        owner = base.name if base.kind in ("unknown", "object") else ""
        if owner not in ("self", "cls") and not (base.kind == "object" and base.payload is not None):
            return None
        definition = self.frame.scope.function(name, owner, self.frame.qualname)
        if definition is None or not _PROPERTY.match(definition.text):
            return None
        if owner not in ("self", "cls") and self._is_open(definition):
            return None
        return self.call_value(Value("user-function", payload=definition), [], {}, name, base)

    def instance_attribute(self, name: str) -> Value | None:
        """What ``__init__`` stores in an attribute of ``self``: types and sizes; a number may have changed since."""
        owner = self.frame.qualname.split(".<locals>")[0].rpartition(".")[0]
        if not owner or self.frame.qualname.endswith("__init__") or self.frame.depth > _MOST_INLINED:
            return None
        if owner not in self.instances:
            attributes: dict[str, Value] = {}
            self.instances[owner] = attributes
            definition = self.frame.scope.function("__init__", "self", self.frame.qualname)
            function = self.definition(Value("user-function", payload=definition)) if definition is not None else None
            if function is not None:
                node, scope, qualname, _ = function
                names: dict[str, Value] = {}
                for parameter in (*node.args.args, *node.args.kwonlyargs):
                    names[parameter.arg] = Value("unknown", name=parameter.arg)
                names["self"] = Value("object", name=owner, payload=attributes)
                frame = Frame(scope, qualname, node, names, None, None, self.frame.line, self.frame.depth + 1)
                with self.elsewhere(), self.region(Meter()):
                    self.measured(frame)
        value = self.instances[owner].get(name)
        if value is None or value.kind in ("none", "unknown"):
            return None
        value = replace(
            value, bytes=ZERO, payload=None if isinstance(value.payload, (tuple, Entries)) else value.payload
        )
        if value.kind in ("list", "dict", "set", "deque"):
            return replace(value, size=of_size(f"self.{name}"), constant=MISSING)
        return assumed(f"self.{name}", value)

    def _share_here(self) -> Range:
        """The share of the runs of the current function that get to this point; a bound in loops and handled calls."""
        low, likely, high = scaled(self.path, self.meter.reach)
        return (low, likely, high) if not self.frame.loops and not self.frame.handlers else (0.0, likely, high)

    def _share_in(self, active: Frame) -> Range:
        """The share of the runs of an open function that get to this point."""
        share = self._share_here()
        for frame in reversed(self.open):
            if frame is active:
                break
            share = scaled(share, frame.entered)
        return share

    def _is_of_functions(self, active: Frame) -> bool:
        """Whether an open function and all that it has called are functions of modules."""
        for frame in reversed(self.open):
            if "." in frame.qualname:
                return False
            if frame is active:
                break
        return True

    def bind_defaults(self, frame: Frame) -> None:
        """Bind the parameters that a call leaves out to their defaults."""
        for name, default in defaults_of(frame.node):
            if name not in frame.names:
                outer, self.frame = self.frame, frame
                frame.names[name] = self.scratch(default)
                self.frame = outer

    def measured(self, frame: Frame) -> tuple[Value, Meter]:
        """Read a function's body in its frame; its result and its cost, recursion included."""
        node = frame.node
        assert node is not None
        start = self._symbols(frame)
        bind_around(frame)
        caller, self.frame = self.frame, frame
        deep, self.deep = self.deep, min(self.deep, _MOST_INLINED)
        self.open.append(frame)
        try:
            # What one coroutine waits for adds up, also where several run at the same time.
            with self.region(Meter()) as body:
                self.path = ALWAYS
                if isinstance(node, ast.Lambda):
                    frame.results.append((1.0, self.value(node.body)))
                else:
                    self.run(node.body)
                    frame.note_put(self.meter.reach[1])
        finally:
            self.open.pop()
            self.frame, self.deep = caller, deep
        if any(wait.call.endswith(".acquire") for wait in body.waits):
            body.waits = [wait for wait in body.waits if not _is_released(wait.call, node)]
        body.waits = ended(body.waits)
        body.reach = ALWAYS
        calls = ONE
        if frame.recursive:
            body, calls = self._repeated_body(frame, body, start)
        grow_around(frame, calls, start)
        if any(symbol.startswith(SYMBOL) for symbol in start):
            body = body.substituted(start)
        if frame.yields.terms:
            parts = [value for _, value in frame.results] or [UNKNOWN]
            item = joined([(1 / len(parts), value) for value in parts])
            if frame.depth:
                # Calling a generator function runs nothing of it: the rest is paid by what consumes what it yields.
                generator = Value("iterator", size=frame.yields, item=item, payload=body, name="generator")
                if frame.yields_endlessly:
                    generator = replace(without_end(item, body), name="generator")
                call = Meter()
                call.spend(primitive("yield"))
                return generator, call
        if not frame.results:
            return NONE, body
        result = joined(frame.results)
        return (result if not frame.recursive else replace(result, constant=MISSING, number=None)), body

    def _symbols(self, frame: Frame) -> dict[str, Quantity]:
        """Give the arguments that recursive calls change a symbol; what the symbols stand for."""
        assert frame.node is not None
        changing = changing_parameters(frame.node)
        if changing is None:
            return {}
        frame.recurses = True
        frame.base_share, frame.checks = base_share(frame.node), checks(frame.node)
        frame.cached = is_cached(frame.node)
        filled = filled_list(frame.node)
        path = frame.names.get(filled[0]) if filled is not None else None
        levels = self._levels(frame) if path is not None and path.kind == "list" else None
        if filled is not None and path is not None and levels is not None:
            # Each level has added an item, and most calls are at the last one.
            frame.base_share = max(frame.base_share, _EVEN_BASE)
            size = mixed([(0.5, ZERO), (0.5, levels)])
            frame.names[filled[0]] = replace(path, constant=MISSING, payload=None, size=size)
        start: dict[str, Quantity] = {}
        given = {name: value.name for name, value in frame.names.items() if value.kind == "unknown" and value.name}
        for name in changing:
            value = frame.names.get(name)
            if value is None:
                continue
            if value.kind == "unknown" and value.name and not value.name.startswith("?"):
                start[value.name] = of_size(value.name)
                continue
            amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
            if amount is None:
                continue
            symbol = f"{SYMBOL}{name}{len(self.open)}"
            start[symbol] = amount
            given[name] = symbol
            is_sized = value.kind not in ("int", "float", "bool")
            frame.names[name] = replace(
                value,
                constant=MISSING,
                number=None if is_sized else of_size(symbol),
                size=of_size(symbol) if is_sized else None,
                payload=None,
            )
        frame.given = given
        return start

    def _repeated_body(self, frame: Frame, body: Meter, start: dict[str, Quantity]) -> tuple[Meter, Quantity]:
        """The cost of all calls of a recursive function, and their number."""
        assert frame.node is not None
        limits = changing_parameters(frame.node) or {}
        base = max(limits.values(), default=0.0)
        fallback = next(
            (
                value.name
                for value in frame.names.values()
                if value.kind == "unknown" and value.name and value.name not in ("self", "cls")
            ),
            f"?{frame.line}",
        )
        if any(step.share[0] >= 1 for step in frame.recursive):
            body.endless = (frame.line if frame.depth else frame.node.lineno - 1, 1.0)
        shape = recurrence(
            frame.recursive,
            start,
            base,
            cached=frame.cached,
            base_share=frame.base_share,
            fallback=fallback,
            checks=frame.checks,
            most=most_calls(frame.node) if all(step.direct for step in frame.recursive) else 1.0,
            bounds=self._bounds(frame),
            levels=self._levels(frame),
            multiplies=results_per_result(frame.node),
        )
        result = Meter(body.parallel)
        if shape.guessed:
            body.miss()
        result.add(body, shape.calls)
        result.own, result.seconds = 0.0, shape.total(body.total)
        result.unknown = shape.total(body.unknown)
        result.peak = shape.open_at_once(body.peak)
        line = frame.line if frame.depth else frame.node.lineno - 1
        name = frame.node.name if not isinstance(frame.node, ast.Lambda) else "lambda"
        result.causes.append(PendingCause(CauseKind.RECURSION, line, name, result.seconds, shape.calls))
        if frame.cached:
            result.hold(shape.calls.times(_KEPT_RESULT_BYTES))
        return result, shape.calls

    def _levels(self, frame: Frame) -> Quantity | None:
        """How deep a recursion gets that appends to a list until it has a certain length."""
        assert frame.node is not None
        filled = filled_list(frame.node)
        if filled is None:
            return None
        outer, self.frame = self.frame, frame
        limit = self.scratch(filled[1])
        self.frame = outer
        if limit.number is not None:
            return limit.number
        return of_size(limit.name) if limit.kind == "unknown" and limit.name else None

    def _bounds(self, frame: Frame) -> dict[str, Quantity]:
        """What the symbols of arguments are compared with where that ends the recursion, by symbol."""
        assert frame.node is not None
        found: dict[str, Quantity] = {}
        outer, self.frame = self.frame, frame
        for name, (limit, is_length) in ends_of(frame.node).items():
            value = frame.names.get(name)
            amount = None if value is None else value.size if is_length else value.number
            if value is not None and value.kind == "unknown" and value.name:
                amount = of_size(value.name)
            if amount is None or len(amount.names) != 1:
                continue
            bound = self.scratch(limit)
            number = bound.number
            if number is not None:
                found[next(iter(amount.names))] = number
            elif bound.kind == "unknown" and bound.name:
                found[next(iter(amount.names))] = of_size(bound.name)
        self.frame = outer
        return found

    def definition(self, target: Value) -> tuple[Function, Scope, str, Frame | None] | None:
        """The syntax tree of a function of the program, its scope, its qualified name, and the frame around it."""
        payload = target.payload
        if isinstance(payload, tuple):
            node, parent = payload
            name = "lambda" if isinstance(node, ast.Lambda) else node.name
            return node, parent.scope, f"{parent.qualname}.<locals>.{name}", parent
        if not isinstance(payload, Definition):
            return None
        self.dependencies.append(payload)
        tree = parsed_function(payload.text)
        if tree is None:
            return None
        self.step(len(payload.text) // 40)
        return tree, payload.scope, payload.qualname, None


def _is_frame_of(frame: Frame, definition: tuple[Function, Scope, str, Frame | None]) -> bool:
    """Whether a function that is being read is this one, and not another with the same text."""
    node, scope, qualname, parent = definition
    if frame.node is not node:
        return False
    return parent is frame or (frame.qualname == qualname and frame.scope.home() is scope.home())


def _calls_itself(active: Frame, written: str, args: Sequence[Value], *, is_direct: bool) -> bool:
    """Whether a call of a function that is being read is recursion.

    Under another name a module keeps what the function's name meant before. A method of another object is that of its
    class, which is not known. A function inside a function is not called as a method.
    """
    node = active.node
    assert node is not None
    if isinstance(node, ast.Lambda):
        return True
    receiver, _, name = written.rpartition(".")
    is_nested = active.qualname.rpartition(".")[0].endswith("<locals>")
    if name != node.name or (receiver and is_nested):
        return False
    for parameter, given in zip((*node.args.posonlyargs, *node.args.args) if not is_direct else (), args, strict=False):
        passed = active.names.get(parameter.arg, UNKNOWN)
        if "user-function" in (passed.kind, given.kind) and not is_one_function([passed, given]):
            return False  # with another function to call it does something else
    own = active.names.get(node.args.args[0].arg) if is_method(node) and node.args.args else None
    if own is None:
        return True
    given = args[0] if args else UNKNOWN
    same = given.payload is own.payload if own.payload is not None else given.payload is None
    return same and (given.kind, given.name) == (own.kind, own.name)


def _is_released(call: str, node: ast.AST) -> bool:
    """Whether a function releases the lock that it acquires: a critical section is not reported as a wait."""
    lock, _, method = call.rpartition(".")
    return method == "acquire" and any(
        isinstance(part, ast.Call) and called_name(part) == f"{lock}.release" for part in ast.walk(node)
    )
