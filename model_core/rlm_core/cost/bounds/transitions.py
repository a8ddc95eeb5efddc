"""Loop transitions: what an iteration makes of the numbers and sizes that a loop changes.

The body is read once by the evaluator with a symbol in place of each, and what it does is taken back. The values behind
it are quantities in these symbols, whatever statements made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..domain.context import Context
from ..domain.dispatch import execute
from ..domain.folding import MISSING
from ..domain.frames import Loop
from ..domain.lattice import joined
from ..domain.quantities import Quantity, constant, of_size
from ..domain.records import replace
from ..domain.syntax import LoopNode
from ..domain.values import NUMBERS, SIZED, Value, number_of

_SYMBOL = "@"
_MOST_DEPTH = 3  # of loops


@dataclass(frozen=True, slots=True)
class Transitions:
    """How a loop changes numbers and sizes, by symbol.

    ``names`` are the values of the names at the start of an iteration, each with the symbol in ``symbols``. ``starts``
    are the values of the symbols before the first iteration, and ``after`` those behind an iteration, in symbols; of
    one that is missing in ``after`` nothing is known.
    """

    names: Mapping[str, Value]
    symbols: Mapping[str, str]
    starts: Mapping[str, Quantity]
    after: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Counter:
    """The name that a loop itself counts, from a start by a step."""

    name: str
    start: float
    step: float


def transitions(context: Context, node: LoopNode, counter: Counter | None = None) -> Transitions | None:
    """The transitions of a loop that is about to run; None where loops are nested too deeply to read a body again."""
    if context.loop_depth >= _MOST_DEPTH:
        return None
    frame, block = context.frame, context.block(node)
    starts: dict[str, Quantity] = {}
    names: dict[str, Value] = {}
    symbols: dict[str, str] = {}
    for name in block.assigned:
        value, symbol = frame.lookup(name), f"{_SYMBOL}{context.loop_depth}{name}"
        if counter is not None and name == counter.name:
            value = Value("int", number=constant(counter.start))
        symbolic = None if value is None else _symbolic(value, symbol)
        if symbolic is not None:
            symbols[name] = symbol
            names[name], starts[symbol] = symbolic
    if not starts:
        return Transitions({}, {}, {}, {})
    loop = Loop(node=node, continued=[])
    with context.trial() as meter:
        for name, value in names.items():
            frame.names[name] = value
        frame.loops.append(loop)
        context.loop_depth += 1
        execute(context, node.body)
        states = [*(loop.continued or ()), (meter.reach[1], frame.names)]
    ends = [(share, bound) for share, bound in states if share > 0]
    after: dict[str, Quantity] = {}
    for name in names if ends else ():
        values = [(share, bound.get(name, names[name])) for share, bound in ends]
        amount = _amount(joined(values) if len(values) > 1 else values[0][1], of_number=names[name].number is not None)
        if amount is not None:
            after[symbols[name]] = amount
    if counter is not None and counter.name in symbols:
        symbol = symbols[counter.name]
        after[symbol] = of_size(symbol) + constant(counter.step)
    return Transitions(names, symbols, starts, after)


def is_symbolic(quantity: Quantity | None) -> bool:
    """Return whether a quantity is one in symbols: what a loop takes an item from has one where it gets there."""
    return quantity is not None and any(name.startswith(_SYMBOL) for name in quantity.names)


def _symbolic(value: Value, symbol: str) -> tuple[Value, Quantity] | None:
    """A value with a symbol in place of its number or size, and what the symbol stands for at first."""
    size = of_size(symbol)
    if value.kind in SIZED and value.size is not None:
        return replace(value, constant=MISSING, payload=None, size=size), value.size
    number = number_of(value)
    if number is None or (value.kind not in NUMBERS and value.kind != "unknown"):
        return None
    # What is not known to be a number may have a length.
    return replace(value, constant=MISSING, payload=None, number=size, size=size if value.name else value.size), number


def _amount(value: Value, *, of_number: bool) -> Quantity | None:
    number = number_of(value) if of_number else None
    return number if number is not None else value.size
