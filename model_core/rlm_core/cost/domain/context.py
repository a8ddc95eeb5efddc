"""The state of an analysis: the running function, the current meter, and the budget of syntax nodes.

The functions of the evaluator receive it as their first argument.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from ..scope import Definition
from . import object_sizes
from .constructors import FileReadings, Footprint
from .frames import Frame
from .meter import ALWAYS, Meter, scaled
from .origins import ITEMS, Place
from .quantities import ONE, ZERO, Quantity, Range, constant, larger, mixed, of_size
from .syntax import BlockSyntax, Function, LoopNode, parsed_function
from .values import NUMBERS, Value


class TooComplex(Exception):  # noqa: N818 - ends an analysis, not an error of the user
    """The budget of syntax nodes is used up."""


LEAST_SEEN = 0.1
"""The share of items that searches see at least, on average, where a loop repeats them: not all end at the first."""


@dataclass(slots=True, eq=False)
class Context:
    """The state that the parts of the evaluator share.

    frame: the function that is being read.
    left: the syntax nodes that may still be read.
    meter: the cost of the current region.
    path: the share of the runs of the current function that enter the current region.
    open: the functions that are being read, the innermost last.
    dependencies: the functions of the program whose text was read.
    largest_block: bytes of the largest block of memory.
    left_in_receiver: bytes that the last method added to containers of its object.
    awaited: calls that are awaited where they are written.
    compiled: operations that the compiler computes.
    instances: what ``__init__`` stores in the attributes of ``self``, by class.
    functions: the syntax trees of functions that were read, by text: a text has one tree in an analysis.
    blocks: what the bodies of loops do, by loop.
    types: types of the parameters of the analysed function, as hints; those that its text shows once it is read.
    readings: what the analyses of the units of a file have in common.
    footprint: what the analysis depends on besides texts and names.
    place: the syntax of the analysed unit that is being read.
    strict: raise what a library rule raises, for tests.
    """

    frame: Frame
    left: int
    meter: Meter = field(default_factory=Meter)
    path: Range = ALWAYS
    loop_depth: int = 0
    expression_depth: int = 0
    statement_depth: int = 0
    open: list[Frame] = field(default_factory=list)
    dependencies: list[Definition] = field(default_factory=list)
    largest_block: Quantity = ZERO
    left_in_receiver: Quantity = ZERO
    awaited: set[ast.expr] = field(default_factory=set)
    compiled: set[ast.expr] = field(default_factory=set)
    instances: dict[str, dict[str, Value]] = field(default_factory=dict)
    functions: dict[str, Function | None] = field(default_factory=dict)
    blocks: dict[LoopNode, BlockSyntax] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    readings: FileReadings | None = None
    footprint: Footprint = field(default_factory=Footprint)
    place: Place = field(default_factory=Place)
    strict: ClassVar[bool] = False

    @property
    def is_caught(self) -> bool:
        """Return whether an error here is caught in an open function: that may be how something without end ends."""
        return any(frame.handlers for frame in (self.frame, *self.open))

    def step(self, nodes: int = 1) -> None:
        """Count syntax nodes.

        Raises:
            TooComplex: more than the budget.
        """
        self.left -= nodes
        if self.left < 0:
            raise TooComplex

    def miss(self, operation: str, *values: Value, times: Quantity = ONE) -> None:
        """Count an operation on values; one on an object of an unknown type may run any code.

        Args:
            operation: what it is written as, such as ``+``.
            values: the operands whose type decides what runs.
            times: how often it runs.
        """
        for value in values:
            if value.kind == "object" or (value.kind == "unknown" and value.type not in NUMBERS):
                self.meter.miss(operation, times)
                return

    def stop(self) -> None:
        """Let nothing behind this statement run."""
        self.meter.reach = (0.0, 0.0, 0.0)

    @contextmanager
    def region(self, meter: Meter | None = None) -> Iterator[Meter]:
        """Measure a region with a separate meter, which the caller adds to the current one."""
        outer, path = self.meter, self.path
        self.meter = meter or Meter(outer.parallel, place=outer.place)
        self.path = scaled(path, outer.reach)
        try:
            yield self.meter
        finally:
            self.meter, self.path = outer, path

    @contextmanager
    def trial(self) -> Iterator[Meter]:
        """Read something with a separate meter, and take back all that it does.

        The syntax nodes that it takes do not count, since what is tried is read after it as well.

        Raises:
            TooComplex: more syntax nodes than are left.
        """
        frames = {id(frame): frame for frame in (self.frame, *self.open)}
        for frame in list(frames.values()):
            while frame.parent is not None:
                frame = frame.parent
                frames[id(frame)] = frame
        kept = [(frame, frame.checkpoint()) for frame in frames.values()]
        nodes, depth, awaited = self.left, self.loop_depth, set(self.awaited)
        largest, left_in_receiver = self.largest_block, self.left_in_receiver
        with self.region(Meter()) as meter:
            self.path = ALWAYS
            try:
                yield meter
                self.left = nodes
            finally:
                for frame, checkpoint in kept:
                    frame.take_back(checkpoint)
                self.loop_depth, self.awaited = depth, awaited
                self.largest_block, self.left_in_receiver = largest, left_in_receiver

    @contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Evaluate in another function's frame."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Read what ran before the functions that are being read: calls of those in it are not recursion."""
        outer, self.open = self.open, []
        try:
            yield
        finally:
            self.open = outer

    def function(self, text: str) -> Function | None:
        """Return the syntax tree of a function; None where the text cannot be read."""
        if text not in self.functions:
            self.functions[text] = parsed_function(text)
        return self.functions[text]

    def block(self, node: LoopNode) -> BlockSyntax:
        """Return what a loop's body does, which is read once."""
        block = self.blocks.get(node)
        if block is None:
            target = [] if isinstance(node, ast.While) else [node.target]
            block = self.blocks[node] = BlockSyntax([*node.body, *target])
        return block

    def note_kind(self, kind: str) -> None:
        """Note the kind of value that the syntax which is being read searches, copies or changes."""
        if self.frame.is_own:
            self.place.noted, self.place.value_kind = self.place.node, kind

    @contextmanager
    def producing_items(self) -> Iterator[None]:
        """Let what is spent be that of the items of the loop that is being read, not of its body."""
        place = self.place
        outer = place.noted, place.value_kind
        self.note_kind(ITEMS)
        try:
            yield
        finally:
            place.noted, place.value_kind = outer

    def length(self, value: Value) -> Quantity:
        """Return the number of items of a value; a size named after it where that is not known."""
        if value.size is not None:
            return value.size
        return self.named_size(value)

    @property
    def is_repeated(self) -> bool:
        """Whether a loop around repeats what is being read, here or where the function is called."""
        return any(frame.loops for frame in self.open)

    def searched(self, count: Quantity) -> Quantity:
        """Return how many items a search sees: on average half of them, and in a loop :data:`LEAST_SEEN` at least."""
        if count.constant is None and self.is_repeated:
            return count * constant(LEAST_SEEN, 1.0, 0.5)
        return mixed([(0.5, ONE), (0.5, count)])

    def named_size(self, value: Value) -> Quantity:
        """Return a size that the text does not fix."""
        if value.kind == "unknown" and value.name:
            return of_size(value.name)
        return of_size(self.line_name(self.frame))

    def line_name(self, frame: Frame) -> str:
        """Return the name of a size that has none: the line of the current statement of a function."""
        self.footprint.names_lines = True
        return f"?{frame.line}"

    def trips_of(self, node: LoopNode) -> Quantity:
        """Return how often a loop runs of which nothing is known, as a size with its line as a name."""
        self.footprint.names_loops = True
        return of_size(f"?{node.lineno}")

    def consume(self, value: Value, share: Quantity | None = None) -> Quantity:
        """Return the number of items that iterating over a value yields; spends what producing them takes."""
        count = self.length(value)
        if count.exact == math.inf:
            if not self.is_caught:
                self.meter.run_on(self.frame.line)
            count = ONE
        times = ONE if share is None else share
        if not (value.kind == "object" and value.name and value.payload is None):
            # Objects of the library have their own entries.
            self.miss("iter", value, times=count * times)
        if value.kind == "array":
            self.meter.spend(value.step * count * times)
        if value.kind == "iterator" and isinstance(value.payload, Meter):
            self.meter.add(value.payload, times)
        if value.step.terms:
            self.meter.spend(value.step * count * times)
        return count

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
    """Return the bytes of the largest block of a container or text: its table, without its items."""
    if value.kind == "int" or value.name == "array.array":
        return value.bytes
    if value.size is None or value.size.constant is None or value.kind not in object_sizes.KINDS:
        return ZERO
    return object_sizes.container(value.kind, value.size)
