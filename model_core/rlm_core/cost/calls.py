"""Calls: library rules, functions of the program, which are read with the arguments that they get, and recursion."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rlm_core.types import CauseKind, WaitKind

from . import library
from .comprehensions import without_end
from .concurrency import in_background, in_rounds, longest, within
from .containers import is_stored
from .domain.meter import Meter, PendingCause
from .domain.quantities import ONE, ZERO, Quantity, constant, larger
from .domain.values import STARRED, UNKNOWN, Value
from .frames import LoopVariable
from .library.unit_costs import each, primitive, seconds
from .method_effects import MethodEffects
from .syntax import called_name

_STARTING = frozenset({"create_task", "ensure_future"})  # run a coroutine in the background
_RUNNING = frozenset({"run", "run_until_complete", "shield"})  # run a coroutine to its end
_INSERTING = frozenset({"bisect.insort", "bisect.insort_left", "bisect.insort_right", "heapq.heappush"})
_MOST_STARRED = 32


@dataclass(slots=True)
class RuleCall:
    """A call as a rule of the library sees it; implements :class:`rlm_core.cost.domain.values.Call`."""

    owner: Calls
    name: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    receiver: Value | None = None
    held: Quantity = field(default=ZERO)

    def spend(self, amount: Quantity | float) -> None:
        """Add computing time."""
        self.owner.meter.spend(amount)

    def allocate(self, bytes_: Quantity | float) -> None:
        """Add memory that only the call needs."""
        self.held = self.held + (bytes_ if isinstance(bytes_, Quantity) else constant(bytes_))
        self.owner.largest_block = larger(self.owner.largest_block, self.held)
        self.owner.meter.hold(self.owner.frame.held + self.held)

    def length(self, value: Value) -> Quantity:
        """The number of items of a value."""
        return self.owner.length(value)

    def consume(self, value: Value) -> Quantity:
        """The number of items that iterating yields; what producing them takes is paid for."""
        return self.owner.consume(value)

    def apply(self, function: Value, times: Quantity, args: Sequence[Value]) -> Value:
        """The result of calling ``function``, ``times`` times."""
        with self.owner.region() as body:
            result = self.owner.call_value(function, list(args), {}, "")
        self.owner.meter.add(body, times)
        return result

    def in_pool(self, function: Value, times: Quantity, args: Sequence[Value], workers: Quantity | None) -> Value:
        """The result of calling ``function``, ``times`` times, ``workers`` at a time."""
        with self.owner.region(Meter(parallel=True)) as body:
            result = self.apply(function, times, args)
        body.waits = in_rounds(body.waits, times, workers)
        self.owner.meter.add(body)
        return result

    def start(self, function: Value, args: Sequence[Value]) -> None:
        """Start a call of ``function`` in the background."""
        with self.owner.started():
            self.owner.call_value(function, list(args), {}, "")

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        """The call waits."""
        self.owner.meter.wait(kind, self.owner.frame.line, self.name, seconds)

    def endless(self) -> None:
        """The call may not end."""
        if not self.owner.is_caught:
            self.owner.meter.run_on(self.owner.frame.line)

    def unknown(self, times: Quantity) -> None:
        """Something of unknown cost runs."""
        self.owner.meter.miss(times)


class Calls(MethodEffects):
    """Evaluates calls of functions, methods and what the library knows."""

    def consume(self, value: Value, share: Quantity | None = None) -> Quantity:
        """The number of items that iterating over a value yields; spends what producing them takes."""
        count = self.length(value)
        exact = count.exact
        if exact == math.inf:
            if not self.is_caught:
                self.meter.run_on(self.frame.line)
            count = ONE
        if value.kind == "array":
            self.meter.spend(value.step * count * (ONE if share is None else share))
        if value.kind == "iterator":
            times = ONE if share is None else share
            if isinstance(value.payload, Meter):
                self.meter.add(value.payload, times)
        if value.step.terms:
            self.meter.spend(value.step * count * (ONE if share is None else share))
        return count

    def call(self, node: ast.Call) -> Value:
        """Evaluate a call."""
        outer_line, self.frame.line = self.frame.line, node.lineno - 1 if not self.frame.depth else self.frame.line
        try:
            return self._call_of(node)
        finally:
            self.frame.line = outer_line

    def _call_of(self, node: ast.Call) -> Value:
        function = node.func
        receiver: Value | None = None
        if isinstance(function, ast.Attribute):
            receiver = self.value(function.value)
            target = self._method_target(receiver, function)
        else:
            target = self.value(function)
        if target.kind in ("function", "module") and target.name.endswith(("asyncio.gather", "asyncio.wait")):
            return self._together(node)
        if target.kind in ("function", "module") and target.name.endswith("asyncio.wait_for") and node.args:
            return self._limited(node)
        if called_name(node).rpartition(".")[2] in _STARTING:
            with self.started():
                for argument in node.args:
                    self.value(argument)
            return UNKNOWN
        if node not in self.awaited and self._is_coroutine(target):
            # It runs later, if at all: the result is an object that something else awaits.
            with self.started():
                return self._result_of(node, target, receiver)
        return self._result_of(node, target, receiver)

    def _is_coroutine(self, target: Value) -> bool:
        found = self.definition(target) if target.kind == "user-function" else None
        return found is not None and isinstance(found[0], ast.AsyncFunctionDef)

    def _result_of(self, node: ast.Call, target: Value, receiver: Value | None) -> Value:
        """The result of a call of ``target`` with the arguments of a node."""
        function = node.func
        if called_name(node).rpartition(".")[2] in _RUNNING:
            self.awaited.update(node.args)
        args = [value for argument in node.args for value in self._passed(argument)]
        keywords = {word.arg: self.value(word.value) for word in node.keywords if word.arg is not None}
        for word in node.keywords:
            if word.arg is None:
                self.value(word.value)
        if target.kind == "function" and target.name in ("builtins.map", "builtins.filter") and len(args) > 1:
            return self._lazy(target.name, args)
        if target.kind == "function" and target.name in ("builtins.any", "builtins.all", "builtins.next") and args:
            stopped = self._stopped(target.name.rpartition(".")[2], node, args)
            if stopped is not None:
                return stopped
        name = called_name(node)
        before = self.meter.total if receiver is not None or target.kind == "function" else None
        temporaries = [value for value, part in zip(args, node.args, strict=False) if not is_stored(part)]
        if receiver is not None and isinstance(function, ast.Attribute) and not is_stored(function.value):
            temporaries.append(receiver)
        # An array without a name lives until the call returns.
        passed = [value.bytes for value in temporaries if value.kind == "array" and value.bytes.terms]
        held = self.frame.held
        if passed and target.kind != "user-function":
            self.frame.held = sum(passed, held)
        if receiver is not None and isinstance(function, ast.Attribute) and target is _METHOD:
            result = self._method(function, receiver, args, keywords, name)
        else:
            result = self.call_value(
                target, args, keywords, name, receiver if receiver and receiver.kind != "module" else None
            )
        if passed:
            self.frame.held = held
        if self.left_in_receiver.terms:
            if target.kind == "user-function" and isinstance(function, ast.Attribute):
                self.fill(function.value, self.left_in_receiver)
            self.left_in_receiver = ZERO
        if target.kind == "function" and target.name in _INSERTING and len(args) > 1:
            items = node.args[0]
            if isinstance(items, ast.Name):
                self.grown(items.id, args[0], ONE, args[1])
        if target.name == "heapq.heappop" and node.args and isinstance(node.args[0], ast.Name):
            self.shrunk(node.args[0].id, args[0])
        self._note_call(node, name, before)
        if result.bytes.terms:
            self.hold(result, *temporaries)
            self._note_allocation(result, name)
        return result

    def _passed(self, argument: ast.expr) -> Sequence[Value]:
        """What an argument passes: ``*items`` the items, if they are few and their number is known."""
        value = self.value(argument)
        count = value.size.exact if isinstance(argument, ast.Starred) and value.size is not None else None
        if count is None or not 0 <= count <= _MOST_STARRED or value.kind not in ("list", "tuple"):
            is_open = isinstance(argument, ast.Starred) and count is None and value.payload is None
            return [replace(value, payload=STARRED) if is_open else value]
        if isinstance(value.payload, tuple) and len(value.payload) == count:
            return [part if isinstance(part, Value) else UNKNOWN for part in value.payload]
        return [value.item or UNKNOWN] * round(count)

    def _note_call(self, node: ast.Call, name: str, before: Quantity | None) -> None:
        if before is None:
            return
        spent = self.meter.total - before
        if spent.evaluate(lambda size: 10.0)[1] >= 5e-6:
            self.meter.causes.append(PendingCause(CauseKind.CALL, self.frame.line, name, spent, ONE))

    def _lazy(self, name: str, args: list[Value]) -> Value:
        """``map`` and ``filter`` call their function when they are consumed."""
        self.meter.spend(primitive("builtins.map"))
        sizes = [self.length(value) for value in args[1:]]
        endless = all(library.is_endless(size) for size in sizes)
        with self.region(Meter(self.meter.parallel)) as body:
            counts = [
                self.consume(value)
                for value, size in zip(args[1:], sizes, strict=True)
                if endless or not library.is_endless(size)
            ]
            items = [replace(value.item, bytes=ZERO) if value.item is not None else UNKNOWN for value in args[1:]]
            with self.region() as each_call:
                result = self.call_value(args[0], items, {}, "")
                self.meter.spend(each("builtins.map"))
            self.meter.add(each_call, counts[0])
        item = library.passed(args[1]) if name == "builtins.filter" else result
        if endless:
            return without_end(item, body)
        if name == "builtins.filter":
            kept = counts[0] * constant(0.0, 1.0, 0.5)
            return Value("iterator", size=kept, item=item, payload=body)
        return Value("iterator", size=counts[0], item=item, payload=body)

    def _together(self, node: ast.Call) -> Value:
        """Coroutines that wait at the same time."""
        with self.region(Meter(parallel=True)) as body:
            for argument in node.args:
                self.awaited.update(_awaitables(argument))
                value = self.value(argument)
                if value.kind == "iterator":
                    self.consume(value)
        body.waits = longest(body.waits)
        self.meter.add(body)
        return Value("list")

    def _limited(self, node: ast.Call) -> Value:
        """A coroutine that is given up when its time is over."""
        with self.region() as body:
            self.awaited.add(node.args[0])
            result = self.value(node.args[0])
        timeouts = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "timeout")]
        limits = [self.value(timeout).number for timeout in timeouts]
        body.waits = within(body.waits, limits[0] if limits else None)
        self.meter.add(body)
        return result

    @contextmanager
    def started(self) -> Iterator[None]:
        """What is evaluated here waits in the background, where it may also run for ever."""
        with self.region(Meter(parallel=True)) as body:
            yield
        body.waits, body.endless = in_background(body.waits), None
        self.meter.add(body)

    def _stopped(self, name: str, node: ast.Call, args: list[Value]) -> Value | None:
        """``any``, ``all`` and ``next`` stop early: the least is one item."""
        iterator = args[0]
        if name == "next":
            if iterator.kind != "iterator":
                return None
            count = self.length(iterator)
            exact = count.exact
            if isinstance(iterator.payload, Meter):
                total = count.constant
                share = constant(0.0, 1.0, 0.3)
                if exact == math.inf:
                    share = ONE
                elif total is not None and total[1] > 0:
                    first = min(1 / total[1], 1.0)
                    share = constant(first) if not _is_filtered(node) else constant(0.0, 1.0, first)
                self.meter.add(iterator.payload, share)
            self.meter.spend(iterator.step)
            self.meter.spend(primitive("call.builtin"))
            return replace(iterator.item, bytes=ZERO) if iterator.item is not None else UNKNOWN
        if library.is_endless(iterator.size):
            # It ends at an item that is not known.
            items = self.named_size(UNKNOWN)
            self.meter.spend(iterator.step * items)
            if isinstance(iterator.payload, Meter):
                self.meter.add(iterator.payload, items)
            return Value("bool")
        share = self._stopping_share(name, node)
        if isinstance(iterator.payload, Meter) and iterator.kind == "iterator":
            self.meter.spend(primitive("call.builtin"))
            self.meter.add(iterator.payload, share)
            return Value("bool")
        self.meter.spend(seconds("contains.list", self.length(iterator) * share))
        return Value("bool")

    def _stopping_share(self, name: str, node: ast.Call) -> Quantity:
        """The share of items that ``any`` or ``all`` of a generator over known numbers looks at."""
        argument = node.args[0]
        if isinstance(argument, ast.GeneratorExp) and len(argument.generators) == 1 and not argument.generators[0].ifs:
            source = self.scratch(argument.generators[0].iter)
            target = argument.generators[0].target
            bounds = source.payload if source.kind == "range" else None
            if isinstance(target, ast.Name) and isinstance(bounds, tuple) and bounds[2] > 0:
                names = dict(self.frame.names)
                try:
                    variable = LoopVariable(target.id, *bounds)
                    for k in range(int(min(bounds[2], 40))):
                        self.frame.names[target.id] = variable.at(k)
                        truth = self.truth(self.scratch(argument.elt))
                        if truth is None:
                            break
                        if truth is (name == "any"):
                            return constant((k + 1) / bounds[2])
                    else:
                        return constant(0.0, 1.0, 1.0)
                finally:
                    self.frame.names = names
        return constant(0.0, 1.0, 0.5)

    def _method_target(self, receiver: Value, function: ast.Attribute) -> Value:
        """What ``receiver.name`` calls: a function of a module or class, or the mark for a method of a value."""
        if receiver.kind == "module":
            return self.attribute_of(receiver, function.attr)
        if (
            receiver.kind == "class"
            or (receiver.kind == "unknown" and receiver.name in ("self", "cls"))
            or (receiver.kind == "object" and receiver.payload is not None)
        ):
            own = self._own_method(receiver, function.attr)
            if own is not None:
                return own
            definition = self.frame.scope.function(function.attr, receiver.name, self.frame.qualname)
            if definition is not None:
                return Value("user-function", name=definition.qualname, payload=definition)
        if receiver.kind == "unknown":
            text = (
                ast.unparse(function.value) if isinstance(function.value, (ast.Name, ast.Attribute, ast.Call)) else None
            )
            if text is not None and len(text) < 80 and (library.method_rule("", function.attr) is None):
                definition = self.frame.scope.function(function.attr, text, self.frame.qualname)
                if definition is not None and not self._is_open(definition):
                    return Value("user-function", name=definition.qualname, payload=definition)
        return _METHOD

    def _own_method(self, receiver: Value, name: str) -> Value | None:
        """The method that is being read, called on ``self``."""
        if receiver.name not in ("self", "cls"):
            return None
        owner = self.frame.qualname.rpartition(".")[0]
        qualname = f"{owner}.{name}" if owner else name
        for frame in reversed(self.open):
            if frame.qualname == qualname and frame.node is not None:
                return Value("user-function", name=name, payload=(frame.node, frame))
        return self.frame.lookup(f"self.{name}")

    def _method(
        self, function: ast.Attribute, receiver: Value, args: list[Value], keywords: dict[str, Value], name: str
    ) -> Value:
        method = function.attr
        kinds = (
            [receiver.kind]
            if receiver.kind not in ("object", "unknown")
            else [receiver.name]
            if receiver.kind == "object"
            else []
        )
        rule = next((rule for kind in [*kinds, ""] if (rule := library.method_rule(kind, method)) is not None), None)
        if rule is None and receiver.kind == "unknown":
            rule = self.container_rule(method, receiver)
            if method == "join" and not args:
                # That of a text takes an argument.
                rule = library.method_rule("threading.Thread", "join")
        if rule is None:
            self.meter.spend(primitive("call.builtin"))
            self.meter.miss()
            return UNKNOWN
        result = self.apply_rule(rule, name, args, keywords, receiver)
        self.mutate(function, receiver, args)
        return result

    def apply_rule(
        self,
        rule: library.Rule,
        name: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        receiver: Value | None,
    ) -> Value:
        """Let a rule of the library work out a call."""
        self.step(3)
        call = RuleCall(self, name, args, keywords, receiver)
        try:
            result = rule(call)
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
            # A rule that an odd argument breaks knows nothing of the call.
            if self.strict:
                raise
            self.meter.miss()
            return UNKNOWN
        if call.held.terms:
            self.meter.hold(self.frame.held + call.held + result.bytes)
        return result

    def call_value(
        self, target: Value, args: list[Value], keywords: dict[str, Value], name: str, receiver: Value | None = None
    ) -> Value:
        """Call a value."""
        if target.kind == "user-function":
            return self._call_user(target, args, keywords, receiver, name)
        if target.kind == "class":
            return self._construct(target, args, keywords)
        if target.kind == "unknown" and target.name == "cls":
            owner = self.frame.qualname.split(".<locals>")[0].rpartition(".")[0]
            return self._construct(Value("class", name=owner), args, keywords)
        if target.kind in ("function", "module"):
            rule = library.rule_for(target.name)
            if rule is not None:
                return self.apply_rule(rule, name or target.name, args, keywords, None)
            self.meter.spend(primitive("call.builtin"))
            self.meter.miss()
            return Value("unknown")
        called = library.method_rule(target.name, "__call__") if target.kind == "object" else None
        if called is not None:
            return self.apply_rule(called, name, args, keywords, target)
        self.meter.spend(primitive("call.builtin"))
        self.meter.miss()
        for value in args:
            # Of an iterator without end it takes what it needs.
            if value.kind == "iterator" and not library.is_endless(value.size):
                self.consume(value)
        return UNKNOWN


def _awaitables(argument: ast.expr) -> Iterator[ast.expr]:
    """The parts of an argument that are coroutines: itself, or the items of a list."""
    match argument:
        case ast.Starred(value=value):
            yield from _awaitables(value)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            yield from items
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) | ast.SetComp(elt=item):
            yield item
        case _:
            yield argument


def _is_filtered(node: ast.Call) -> bool:
    argument = node.args[0]
    return isinstance(argument, ast.GeneratorExp) and any(generator.ifs for generator in argument.generators)


_METHOD = Value("function", name="")
