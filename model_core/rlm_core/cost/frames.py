"""The state of the analysis: the running function's names, the current meter, and the budget of syntax nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .domain import object_sizes
from .domain.folding import MISSING
from .domain.meter import ALWAYS, Meter, scaled
from .domain.quantities import ONE, ZERO, Quantity, Range, is_whole, larger, mixed, of_size
from .domain.values import UNKNOWN, Value, literal
from .scope import Definition, Scope
from .syntax import Function, LoopNode

SAMPLES = 24


@dataclass(slots=True)
class LoopVariable:
    """The variable of a loop over a range of known numbers: ``start + step * k`` for k below ``count``.

    ``value`` is what the loop binds to the name, and ``points`` are the k of a sample of the iterations that get to the
    statement that is being read: all of them while there are few.
    """

    name: str
    start: float
    step: float
    count: float
    value: Value = UNKNOWN
    points: Sequence[int] = ()

    def at(self, k: int) -> Value:
        """The value in iteration ``k``."""
        number = self.start + self.step * k
        return literal(int(number) if is_whole(number) else number)

    @property
    def is_sampled(self) -> bool:
        """Whether there are more iterations than points."""
        return self.count > SAMPLES

    def restart(self) -> None:
        """Get back to the iterations that enter the loop's body."""
        count = int(min(self.count, 1e15))
        self.points = range(count) if count <= SAMPLES else [_spread(index, count) for index in range(SAMPLES)]


def _spread(index: int, count: int) -> int:
    """The index-th of ``SAMPLES`` points over ``count``: one in each part, at places that differ from multiples."""
    begins, ends = index * count // SAMPLES, (index + 1) * count // SAMPLES
    return begins + index * 7 % 12 * (ends - begins) // 12


@dataclass(slots=True)
class Loop:
    """A loop that is being read.

    ``may_leave`` says whether something in it may end it early, at a trip that is not known; ``exits`` whether such a
    statement was reached. ``exit`` is the statement that leaves in a trip that is known, and ``exit_share`` the share
    of the trips in which it does. ``trips`` is how often what is read once runs, and ``items`` how many items a search
    puts into its containers at most.
    """

    variable: LoopVariable | None = None
    trips: Quantity = ONE
    may_leave: bool = False
    exits: bool = False
    exit: ast.If | None = None
    exit_share: float = 0.0
    items: Quantity | None = None
    node: LoopNode | None = None

    def counts(self, name: str) -> bool:
        """Whether a name is the loop's variable, a number that is new in each trip."""
        return self.variable is not None and self.variable.name == name


@dataclass(frozen=True, slots=True)
class Recursive:
    """A recursive call inside a function that is being read.

    The arguments, the share of runs that gets there, and how often the loops around it repeat it. ``direct``: it is in
    the function's own text, not in that of a function that it calls. ``given`` maps parameters to the names of their
    sizes. ``tries``: the function searches, so that a loop repeats the call on the whole, changed, and not on parts.
    """

    arguments: Mapping[str, Value]
    share: tuple[float, float, float]
    times: Quantity = ONE
    direct: bool = True
    given: Mapping[str, str] = field(default_factory=dict)
    tries: bool = False


@dataclass(slots=True)
class Frame:
    """A function that is being read."""

    scope: Scope
    qualname: str = ""
    node: Function | None = None
    names: dict[str, Value] = field(default_factory=dict)
    parent: Frame | None = None
    owner: Value | None = None
    line: int = 0
    depth: int = 0
    held: Quantity = ZERO
    # Bytes added to containers inside the containers that names hold.
    filled: dict[str, Quantity] = field(default_factory=dict)
    # Names bound to objects that keep the previous value of the name.
    chained: set[str] = field(default_factory=set)
    # Containers of the functions around, without their bytes, and what a call puts into them: items and bytes.
    around: dict[str, Value] = field(default_factory=dict)
    put: dict[str, tuple[Quantity, Quantity]] = field(default_factory=dict)
    results: list[tuple[float, Value]] = field(default_factory=list)
    yields: Quantity = ZERO
    yields_endlessly: bool = False
    loops: list[Loop] = field(default_factory=list)
    recursive: list[Recursive] = field(default_factory=list)
    recurses: bool = False
    cached: bool = False
    # Of a recursive function: the share of calls that end at once, how many checks end them, and the names of the sizes
    # of its parameters.
    base_share: float = 0.5
    checks: int = 1
    given: Mapping[str, str] = field(default_factory=dict)
    handlers: int = 0
    # The share of the runs of the caller that call this function.
    entered: Range = ALWAYS

    def lookup(self, name: str) -> Value | None:
        """The value of a name bound here or in an enclosing function."""
        frame: Frame | None = self
        while frame is not None:
            value = frame.names.get(name)
            if value is not None:
                return value
            frame = frame.parent
        return None

    def bind(self, name: str, value: Value) -> None:
        """Bind a name and keep count of the memory that names hold."""
        old = self.names.get(name)
        if old is not None and old.bytes.terms:
            self.held = self.held - old.bytes
        if value.bytes.terms:
            self.held = self.held + value.bytes
        self.names[name] = value

    def restore(self, names: dict[str, Value], held: Quantity) -> None:
        """Go back to an earlier state of the names."""
        self.names, self.held = names, held

    def note_put(self, share: float) -> None:
        """Add what has been put into containers around at a place where so many runs leave the function."""
        for name, before in self.around.items():
            after = self.names.get(name, before)
            if after is not before and after.size is not None and before.size is not None:
                items, bytes_ = self.put.get(name, (ZERO, ZERO))
                self.put[name] = items + (after.size - before.size).times(share), bytes_ + after.bytes.times(share)

    def points(self) -> list[tuple[LoopVariable, Sequence[int]]]:
        """The iterations of the loops around this statement that get to it."""
        return [(loop.variable, loop.variable.points) for loop in self.loops if loop.variable is not None]


def restore_points(points: Sequence[tuple[LoopVariable, Sequence[int]]]) -> None:
    """Let all iterations that got to an earlier statement get to the next one."""
    for variable, remaining in points:
        variable.points = remaining


class TooComplex(Exception):  # noqa: N818 - ends an analysis, not an error of the user
    """The budget of syntax nodes is used up."""


class State:
    """What all parts of the interpreter share.

    ``strict`` interpreters raise what a library rule raises, for tests.
    """

    strict = False

    def __init__(self, scope: Scope, budget: int) -> None:
        self.meter = Meter()
        self.frame = Frame(scope)
        # The share of the runs of the current function that enter the current region.
        self.path: Range = ALWAYS
        self.left = budget
        self.loop_depth = 0
        self.open: list[Frame] = []
        # Operations on objects of unknown types, which may run any code.
        self.opaque = 0
        self.dependencies: list[Definition] = []
        self.largest_block: Quantity = ZERO  # bytes
        self.left_in_receiver: Quantity = ZERO  # bytes that the last method added to containers of its object
        self.awaited: set[ast.expr] = set()  # calls that are awaited where they stand
        self.compiled: set[int] = set()  # identities of operations that the compiler computes
        self.instances: dict[str, dict[str, Value]] = {}

    @property
    def is_caught(self) -> bool:
        """Whether an error here is caught in an open function: that may be how something without end ends."""
        return any(frame.handlers for frame in (self.frame, *self.open))

    def step(self, nodes: int = 1) -> None:
        """Count syntax nodes.

        Raises:
            TooComplex: more than the budget.
        """
        self.left -= nodes
        if self.left < 0:
            raise TooComplex

    @contextmanager
    def region(self, meter: Meter | None = None) -> Iterator[Meter]:
        """Measure a region with a separate meter, which the caller adds to the current one."""
        outer, path = self.meter, self.path
        self.meter, self.path = meter or Meter(outer.parallel), scaled(path, outer.reach)
        try:
            yield self.meter
        finally:
            self.meter, self.path = outer, path

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Read what ran before the functions that are being read: calls of those in it are not recursion."""
        outer, self.open = self.open, []
        try:
            yield
        finally:
            self.open = outer

    def length(self, value: Value) -> Quantity:
        """The number of items of a value; a size named after it where that is not known."""
        if value.size is not None:
            return value.size
        return self.named_size(value)

    def named_size(self, value: Value) -> Quantity:
        """A size that the text does not fix."""
        if value.kind == "unknown" and value.name:
            return of_size(value.name)
        return of_size(f"?{self.frame.line}")

    def hold(self, *fresh: Value) -> None:
        """Note the memory in use while these new values exist."""
        total = self.frame.held
        for value in fresh:
            if value.bytes.terms:
                total = total + value.bytes
                block = value.bytes if value.kind == "array" else table_of(value)
                self.largest_block = larger(self.largest_block, block)
        self.meter.hold(total)


def table_of(value: Value) -> Quantity:
    """Bytes of the largest block of a container or text: its table, without its items."""
    if value.kind == "int" or value.name == "array.array":
        return value.bytes
    if value.size is None or value.size.constant is None or value.kind not in object_sizes.KINDS:
        return ZERO
    return object_sizes.container(value.kind, value.size)


def joined(branches: list[tuple[float, Value]]) -> Value:
    """What is known of a value that is one of several, each with its share."""
    first = branches[0][1]
    if all(value is first for _, value in branches):
        return first
    values = [value for _, value in branches]
    kinds = {value.kind for value in values}
    if "user-function" in kinds and not is_one_function([value for value in values if value.kind != "none"]):
        # Which one is called is not known.
        return replace(UNKNOWN, bytes=mixed((share, value.bytes) for share, value in branches))
    if len(kinds) > 1:
        known = [(share, value) for share, value in branches if value.kind not in ("none", "unknown")]
        if len({value.kind for _, value in known}) != 1 or len(known) == len(values):
            return replace(UNKNOWN, bytes=mixed((share, value.bytes) for share, value in branches))
        branches, first = known, known[0][1]
        values = [value for _, value in branches]
    total = sum(share for share, _ in branches) or 1.0
    shares = [share / total for share, _ in branches]
    constant = first.constant
    same = all(value.constant is not MISSING and _equal(value.constant, constant) for value in values)
    return replace(
        first,
        constant=constant if same else MISSING,
        number=_mixed_field(shares, [value.number for value in values]),
        size=_mixed_field(shares, [value.size for value in values]),
        bytes=mixed((share, value.bytes) for share, value in zip(shares, values, strict=True)),
        shape=first.shape if all(value.shape == first.shape for value in values) else None,
    )


def is_one_function(values: list[Value]) -> bool:
    """Whether values are all the same function of the program."""
    if any(value.kind != "user-function" for value in values):
        return False
    nodes = [value.payload[0] if isinstance(value.payload, tuple) else value.payload for value in values]
    return all(node is nodes[0] or (isinstance(node, Definition) and node == nodes[0]) for node in nodes)


def _equal(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _mixed_field(shares: list[float], quantities: list[Quantity | None]) -> Quantity | None:
    known = [quantity for quantity in quantities if quantity is not None]
    if len(known) < len(quantities):
        return None
    if all(quantity == known[0] for quantity in known):
        return known[0]
    return mixed(zip(shares, known, strict=True))
