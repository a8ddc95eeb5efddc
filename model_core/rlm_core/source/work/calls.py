"""Calls: library rules, functions of the program, which are read with the arguments that they get, and recursion."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rlm_core.types import CauseKind, WaitKind

from . import library, object_sizes
from .expressions import ENDLESS, Expressions, is_stored, literal, without_end
from .frames import Frame, Function, Recursive, TooComplex, joined
from .meter import ALWAYS, Meter, PendingCause, scaled
from .quantities import ONE, ZERO, Quantity, Range, constant, larger, of_size
from .recursion import SYMBOL, base_share, changing_parameters, is_cached, recurrence
from .scope import Definition, Scope
from .syntax import called_name, parse
from .unit_costs import each, primitive, seconds
from .values import MISSING, NONE, UNKNOWN, Entries, Value

_MOST_INLINED = 6  # depth
_PROPERTY = re.compile(r"\s*@(?:functools\.)?(?:cached_)?property\b")
_INNER_ITEM_BYTES = 9.0  # a reference in a list that reserves an eighth more
_GROWING = {"append": 1, "add": 1, "appendleft": 1, "insert": 1, "push": 1, "put": 1}
_CALLEE_SHARE = 3  # of the budget that is left
_SIZED = frozenset({"list", "tuple", "str", "set", "dict", "unknown"})
_MERGING = frozenset({"extend", "update", "extendleft"})
_INSERTING = frozenset({"bisect.insort", "bisect.insort_left", "bisect.insort_right"})
SHRINKING = frozenset({"pop", "popleft", "popitem"})
_MEMORY_FILES = {"io.StringIO": 4.0, "io.BytesIO": 1.0}  # bytes per character


@dataclass(slots=True)
class RuleCall:
    """A call as a rule of the library sees it; implements :class:`rlm_core.source.work.values.Call`."""

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

    def wait(self, kind: WaitKind, seconds: Quantity | None = None) -> None:
        """The call waits."""
        self.owner.meter.wait(kind, self.owner.frame.line, self.name, seconds)

    def endless(self) -> None:
        """The call may not end."""
        self.owner.meter.run_on(self.owner.frame.line)

    def unknown(self, times: Quantity) -> None:
        """Something of unknown cost runs."""
        self.owner.meter.miss(times)


class Calls(Expressions):
    """Evaluates calls; the bodies of functions are left to a subclass."""

    @abstractmethod
    def run(self, body: Sequence[ast.stmt]) -> None:
        """Read statements in the current frame."""

    def consume(self, value: Value, share: Quantity | None = None) -> Quantity:
        """The number of items that iterating over a value yields; spends what producing them takes."""
        count = self.length(value)
        exact = count.exact
        if exact is not None and exact >= ENDLESS:
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
        args = [self.value(argument) for argument in node.args]
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
        if target.kind == "function" and target.name in _INSERTING and len(args) > 1:
            items = node.args[0]
            if isinstance(items, ast.Name):
                self.grown(items.id, args[0], ONE, args[1])
        self._note_call(node, name, before)
        if result.bytes.terms:
            self.hold(result, *temporaries)
            self._note_allocation(result, name)
        return result

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
                value = self.value(argument)
                if value.kind == "iterator":
                    self.consume(value)
        longest: dict[WaitKind, object] = {}
        waits = []
        for wait in sorted(
            body.waits, key=lambda wait: -(wait.seconds.evaluate(lambda n: 1.0)[1] if wait.seconds else 0)
        ):
            if wait.kind not in longest:
                longest[wait.kind] = wait
                waits.append(wait)
        body.waits = waits
        self.meter.add(body)
        return Value("list")

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
                if exact is not None and exact >= ENDLESS:
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
                    for k in range(int(min(bounds[2], 40))):
                        number = bounds[0] + bounds[1] * k
                        self.frame.names[target.id] = literal(int(number))
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

    def _is_open(self, definition: Definition) -> bool:
        """Whether a function is being read: a call of its name on another object delegates, and is not recursion."""
        node = parsed_function(definition.text)
        return any(frame.node is node for frame in self.open)

    def _own_method(self, receiver: Value, name: str) -> Value | None:
        """The method that is being read, called on ``self``."""
        if receiver.name not in ("self", "cls"):
            return None
        for frame in reversed(self.open):
            if not isinstance(frame.node, ast.Lambda) and frame.node is not None and frame.node.name == name:
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
            rule = self._container_rule(method, receiver)
            if method == "join" and not args:
                # That of a text takes an argument.
                rule = library.method_rule("threading.Thread", "join")
        if rule is None:
            self.meter.spend(primitive("call.builtin"))
            self.meter.miss()
            return UNKNOWN
        result = self.apply_rule(rule, name, args, keywords, receiver)
        self._mutate(function, receiver, args)
        return result

    def _container_rule(self, method: str, receiver: Value) -> library.Rule | None:
        """The rule of a method that only containers and text have, on a value that is not known."""
        for kind in _KINDS_OF_METHOD.get(method, ()):
            rule = library.method_rule(kind, method)
            if rule is not None:
                return rule
        return None

    def _mutate(self, function: ast.Attribute, receiver: Value, args: list[Value]) -> None:
        method = function.attr
        if isinstance(function.value, ast.Name) and method in SHRINKING:
            size = receiver.size.exact if receiver.size is not None else None
            if size is not None and size >= 1:
                name = function.value.id
                self.frame.bind(name, replace(receiver, constant=MISSING, size=constant(size - 1), payload=None))
            return
        if not args:
            return
        if not isinstance(function.value, ast.Name):
            self._fill_inner(function, args)
            return
        name = function.value.id
        if method == "write" and receiver.name in _MEMORY_FILES and receiver.size is not None:
            written = self.length(args[0])
            held = receiver.bytes + written.times(_MEMORY_FILES[receiver.name])
            self.frame.bind(name, replace(receiver, size=receiver.size + written, bytes=held))
            return
        if receiver.kind not in ("list", "set", "dict", "deque", "bytearray") and receiver.name != "collections.deque":
            return
        if method in _GROWING:
            self.grown(name, receiver, ONE, args[-1] if method == "insert" else args[0])
        elif method in _MERGING:
            count = self.length(args[0])
            self.grown(name, receiver, count, args[0].item or UNKNOWN)
        elif method == "setdefault":
            self.grown(name, receiver, ONE, args[0], args[1] if len(args) > 1 else NONE)

    def _fill_inner(self, function: ast.Attribute, args: list[Value]) -> None:
        """``groups[key].append(item)``: the container that the name holds grows by what an inner one takes."""
        if function.attr not in _GROWING:
            return
        inner: ast.expr = function.value
        while isinstance(inner, (ast.Subscript, ast.Call, ast.Attribute)):
            inner = inner.func if isinstance(inner, ast.Call) else inner.value
        outer = self.frame.names.get(inner.id) if isinstance(inner, ast.Name) else None
        if outer is not None and isinstance(inner, ast.Name) and outer.kind in ("list", "dict", "object"):
            added = constant(_INNER_ITEM_BYTES) + args[-1].bytes
            self.frame.filled[inner.id] = self.frame.filled.get(inner.id, ZERO) + added
            self.frame.bind(inner.id, replace(outer, bytes=outer.bytes + added))

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
            return self._call_user(target, args, keywords, receiver)
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

    def _construct(self, target: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
        attributes: dict[str, Value] = {}
        instance = Value("object", name=target.name, payload=attributes)
        definition = self.frame.scope.function("__init__", target.name, self.frame.qualname)
        self.meter.spend(primitive("object" if definition is None else "object.init"))
        if definition is not None:
            self._call_user(Value("user-function", payload=definition), args, keywords, instance)
        held = constant(object_sizes.instance(len(attributes) or len(args) + len(keywords)))
        own = ZERO
        for value in attributes.values():
            own = own + value.bytes
        return replace(instance, bytes=held + own)

    def _call_user(self, target: Value, args: list[Value], keywords: dict[str, Value], receiver: Value | None) -> Value:
        definition = self.definition(target)
        if definition is None:
            self.meter.miss()
            return UNKNOWN
        node, scope, qualname, parent = definition
        self.meter.spend(primitive("call.function"))
        if is_abstract(node):
            # A subclass defines what runs.
            self.meter.miss()
            return UNKNOWN
        caller = self.frame
        active = next((frame for frame in reversed(self.open) if frame.node is node), None)
        if _is_method(node) and (receiver is not None or parent is None):
            args = [receiver if receiver is not None else Value("unknown", name="self"), *args]
        names = bind_arguments(node, args, keywords)
        if active is not None:
            active.recursive.append(Recursive(names, self._share_in(active)))
            # A function that takes a container usually returns one of about the same size.
            sized = next((value for value in names.values() if value.size is not None and value.kind in _SIZED), None)
            return Value(size=sized.size) if sized is not None else UNKNOWN
        if len(self.open) > _MOST_INLINED:
            self.meter.miss()
            return UNKNOWN
        frame = Frame(scope, qualname, node, names, parent, receiver, caller.line, caller.depth + 1)
        # A callee that takes more than its share is not understood; what follows it still is.
        kept, loop_depth = self.left - self.left // _CALLEE_SHARE, self.loop_depth
        self.left //= _CALLEE_SHARE
        try:
            self.bind_defaults(frame)
            result, body = self.measured(frame)
        except TooComplex:
            self.left, self.frame, self.loop_depth = kept, caller, loop_depth
            self.meter.miss()
            self.opaque += 1
            return UNKNOWN
        self.left += kept
        if body.endless is not None:
            body.endless = (caller.line, body.endless[1])
        self.meter.add(body, held=caller.held)
        return result

    def property_of(self, base: Value, name: str) -> Value | None:
        """What a property of the program's own classes returns; spends what it costs."""
        owner = base.name if base.kind in ("unknown", "object") else ""
        if owner not in ("self", "cls") and not (base.kind == "object" and base.payload is not None):
            return None
        definition = self.frame.scope.function(name, owner, self.frame.qualname)
        if definition is None or not _PROPERTY.match(definition.text):
            return None
        return self.call_value(Value("user-function", payload=definition), [], {}, name, base)

    def instance_attribute(self, name: str) -> Value | None:
        """What ``__init__`` stores in an attribute of ``self``: types and sizes; a number may have changed since."""
        owner = self.frame.qualname.split(".<locals>")[0].rpartition(".")[0]
        if not owner or self.frame.qualname.endswith("__init__") or len(self.open) > _MOST_INLINED:
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
                with self.region(Meter()):
                    self.measured(frame)
        value = self.instances[owner].get(name)
        if value is None or value.kind in ("none", "unknown"):
            return None
        value = replace(
            value, bytes=ZERO, payload=None if isinstance(value.payload, (tuple, Entries)) else value.payload
        )
        if value.kind in ("list", "dict", "set", "deque"):
            return replace(value, size=of_size(f"self.{name}"), constant=MISSING)
        return value

    def _share_in(self, active: Frame) -> Range:
        """The share of the runs of an open function that get to this point; a bound inside callees and loops."""
        share = scaled(self.path, self.meter.reach)
        return share if active is self.frame and not active.loops else (0.0, share[1], share[2])

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
        finally:
            self.open.pop()
            self.frame, self.deep = caller, deep
        if any(wait.call.endswith(".acquire") for wait in body.waits):
            body.waits = [wait for wait in body.waits if not _is_released(wait.call, node)]
        body.reach = ALWAYS
        if frame.recursive:
            body = self._repeated_body(frame, body, start)
        if any(symbol.startswith(SYMBOL) for symbol in start):
            body = substituted(body, start)
        if frame.yields.terms:
            parts = [value for _, value in frame.results] or [UNKNOWN]
            item = joined([(1 / len(parts), value) for value in parts])
            if frame.depth:
                # Calling a generator function runs nothing: its cost is that of consuming what it yields.
                generator = Value("iterator", size=frame.yields, item=item, payload=body, name="generator")
                if frame.yields_endlessly:
                    generator = replace(without_end(item, body), name="generator")
                return generator, Meter()
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
        frame.base_share, frame.cached = base_share(frame.node), is_cached(frame.node)
        start: dict[str, Quantity] = {}
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
            is_sized = value.kind not in ("int", "float", "bool")
            frame.names[name] = replace(
                value,
                constant=MISSING,
                number=None if is_sized else of_size(symbol),
                size=of_size(symbol) if is_sized else None,
                payload=None,
            )
        return start

    def _repeated_body(self, frame: Frame, body: Meter, start: dict[str, Quantity]) -> Meter:
        assert frame.node is not None
        limits = changing_parameters(frame.node) or {}
        base = max(limits.values(), default=0.0)
        fallback = next(
            (
                value.name
                for value in frame.names.values()
                if value.kind == "unknown" and value.name and value.name not in ("self", "cls")
            ),
            "",
        )
        if any(step.share[0] >= 1 for step in frame.recursive):
            body.endless = (frame.line if frame.depth else frame.node.lineno - 1, 1.0)
        shape = recurrence(
            frame.recursive,
            start,
            base,
            cached=frame.cached,
            base_share=frame.base_share,
            fallback=fallback or f"?{frame.line}",
        )
        result = Meter(body.parallel)
        result.add(body, shape.calls)
        result.own, result.seconds = 0.0, shape.total(body.total)
        result.unknown = shape.total(body.unknown)
        result.peak = shape.open_at_once(body.peak)
        line = frame.line if frame.depth else frame.node.lineno - 1
        name = frame.node.name if not isinstance(frame.node, ast.Lambda) else "lambda"
        result.causes.append(PendingCause(CauseKind.RECURSION, line, name, result.seconds, shape.calls))
        return result

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


def substituted(body: Meter, start: Mapping[str, Quantity]) -> Meter:
    """A region's cost with its symbols replaced by what they stand for."""
    return Meter(
        parallel=body.parallel,
        seconds=body.total.substituted(start),
        unknown=body.unknown.substituted(start),
        waits=[
            wait if wait.seconds is None else replace(wait, seconds=wait.seconds.substituted(start))
            for wait in body.waits
        ],
        causes=[
            replace(cause, amount=cause.amount.substituted(start), count=cause.count.substituted(start))
            for cause in body.causes
        ],
        endless=body.endless,
        peak=body.peak.substituted(start),
    )


@lru_cache(maxsize=128)
def parsed_function(text: str) -> Function | None:
    """The first function of a text; equal texts share the tree."""
    tree = parse(text)
    if tree is None:
        return None
    return next((node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


def _is_method(node: Function) -> bool:
    """Whether the first parameter is bound by the call: ``self``, or ``cls`` of a class method."""
    if isinstance(node, ast.Lambda):
        return False
    first = [*node.args.posonlyargs, *node.args.args][:1]
    return bool(first) and first[0].arg in ("self", "cls")


def is_abstract(node: Function) -> bool:
    """Whether a function has no body but a docstring, ``pass``, ``...`` or ``raise NotImplementedError``."""
    if isinstance(node, ast.Lambda):
        return False
    for statement in node.body:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                continue
        return False
    return True


def bind_arguments(node: Function, args: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters of a function by name, for a call with these arguments."""
    positional = [*node.args.posonlyargs, *node.args.args]
    names = {parameter.arg: value for parameter, value in zip(positional, args, strict=False)}
    if node.args.vararg is not None:
        rest = args[len(positional) :]
        item = joined([(1 / len(rest), value) for value in rest]) if rest else UNKNOWN
        names[node.args.vararg.arg] = Value("tuple", size=constant(len(rest)), item=item)
    allowed = {parameter.arg for parameter in (*positional, *node.args.kwonlyargs)}
    names |= {name: value for name, value in keywords.items() if name in allowed}
    if node.args.kwarg is not None:
        names[node.args.kwarg.arg] = Value("dict", size=constant(len(keywords.keys() - allowed)))
    # What the caller holds is not held again.
    return {name: replace(value, bytes=ZERO) if value.bytes.terms else value for name, value in names.items()}


def defaults_of(node: Function | None) -> list[tuple[str, ast.expr]]:
    """The parameters with defaults."""
    if node is None:
        return []
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = list(
        zip([p.arg for p in positional][len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    pairs += [
        (p.arg, value)
        for p, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    ]
    return pairs


def _is_filtered(node: ast.Call) -> bool:
    argument = node.args[0]
    return isinstance(argument, ast.GeneratorExp) and any(generator.ifs for generator in argument.generators)


_METHOD = Value("function", name="")
# Methods that tell the kind of their receiver: only containers or text have them.
_KINDS_OF_METHOD: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("append", "extend", "insert", "sort", "reverse"), ("list",)),
    **dict.fromkeys(("items", "keys", "values", "setdefault"), ("dict",)),
    **dict.fromkeys(("add", "discard", "union", "intersection", "difference", "issubset", "issuperset"), ("set",)),
    **dict.fromkeys(
        ("split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith",
         "encode", "isdigit", "isalpha", "isalnum", "isspace", "title", "capitalize", "casefold", "swapcase", "zfill",
         "format", "partition", "rpartition", "removeprefix", "removesuffix", "isupper", "islower", "ljust", "rjust"),
        ("str",),
    ),
    "popleft": ("deque", "collections.deque"),
    "appendleft": ("deque", "collections.deque"),
    "get": ("dict",),
    "pop": ("list",),
    "replace": ("str",),
    "decode": ("bytes",),
}  # fmt: skip


def _is_released(call: str, node: ast.AST) -> bool:
    """Whether a function releases the lock that it acquires: a critical section is not reported as a wait."""
    lock, _, method = call.rpartition(".")
    return method == "acquire" and any(
        isinstance(part, ast.Call) and called_name(part) == f"{lock}.release" for part in ast.walk(node)
    )
