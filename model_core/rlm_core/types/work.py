"""What static analysis knows of a unit: costs, growth, waits, unknown calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class WaitKind(StrEnum):
    """The kinds of events that a unit waits for."""

    TIME = "time"
    PROCESS = "process"
    NETWORK = "network"
    DATABASE = "database"
    USER = "user"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount that the text states, in SI units: at least ``least``, about ``likely``, at most ``most``.

    The three are equal where the text fixes the amount; a branch or an early return makes a range. ``most`` is a bound
    on the part that is known, see :attr:`WorkFacts.fixed`.
    """

    least: float = 0.0
    likely: float = 0.0
    most: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """A place where a unit waits: ``line`` is a 0-based line of the unit's text, ``call`` the called name as written.

    ``seconds`` is None where the text does not say how long; ``share`` is the estimated share of calls that wait there.
    A loop whose iterations the text does not fix waits ``seconds`` for each item of the sizes ``per``; ``terms`` are
    the seconds of all its iterations. Where ``on_error``, only a handler of an exception waits. ``counts`` is how often
    the unit waits, as a sum over sizes, and ``limit`` the seconds of a timeout. ``each`` is how long the settings say
    that such a wait takes: then ``seconds`` is that of all of them.
    """

    kind: WaitKind
    line: int
    call: str
    seconds: Amount | None = None
    share: float = 1.0
    per: tuple[str, ...] = ()
    on_error: bool = False
    terms: tuple[CostTerm, ...] = field(default=(), repr=False)
    counts: tuple[CostTerm, ...] = field(default=(), repr=False)
    limit: float | None = None
    each: float | None = None

    @property
    def is_known(self) -> bool:
        """Return whether numbers include the wait: a sleep that the text fixes, or one that the settings tell."""
        return self.seconds is not None and (self.kind is WaitKind.TIME or self.each is not None)


@dataclass(frozen=True, slots=True)
class LoopWait:
    """A wait that each item of an input causes: ``line`` is a 0-based line of the unit's text.

    ``call`` is the called name as written; where the unit calls a function that waits, that of the call in there.
    ``over`` is the text of what the loop runs over. ``is_awaited``: other tasks run meanwhile. ``counts`` and ``limit``
    are those of :class:`Wait`. Where ``call`` is an attribute of a queried object, ``loaded_by`` names what reads it
    with the query of the loop.
    """

    kind: WaitKind
    line: int
    call: str
    over: str
    is_awaited: bool = False
    counts: tuple[CostTerm, ...] = field(default=(), repr=False, compare=False)
    limit: float | None = field(default=None, repr=False, compare=False)
    loaded_by: str = ""


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of a cost with one input: ``size**degree * log2(size)**logs * base**size``.

    ``size`` is the input as the text names it: a number itself, or the length of a container.
    """

    size: str
    degree: float = 1.0
    logs: float = 0.0
    base: float = 1.0


@dataclass(frozen=True, slots=True)
class CostTerm:
    """One term of a sum over sizes: an amount times what each size contributes; the constant term has no factors.

    The amount is a range, as in :class:`Amount`, whose ends may be negative or infinite: only sums are costs.
    """

    least: float
    likely: float
    most: float
    factors: tuple[Growth, ...] = ()


class CauseKind(StrEnum):
    """The kinds of causes of a large cost."""

    LOOP = "loop"
    RECURSION = "recursion"
    CALL = "call"
    ALLOCATION = "allocation"
    WAIT = "wait"
    NUMBER = "number"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class Cause:
    """A place that a known cost comes from: ``line`` is 0-based in the unit's text, ``name`` the call or loop header.

    ``amount`` is the likely cost in seconds or bytes; ``count`` how often the place runs, where that is known. A
    regular expression that backtracks has the amount and the growth of the ``worst_case``, which likely costs exclude.
    """

    kind: CauseKind
    line: int
    name: str
    amount: float
    count: float | None = None
    worst_case: Growth | None = None


class Cure(StrEnum):
    """What usually makes a cost grow less, or an item cost less, by what the text does now.

    ``TUPLES`` replaces the rows of ``iterrows``, ``COLUMNS`` a function that is applied to each row, ``VALUES`` reading
    and ``COLUMN`` assigning one value of a table at a time, and ``CONCAT`` a table that is copied for each part.
    """

    SET = "set"
    DICT = "dict"
    LOOKUP = "lookup"
    DEQUE = "deque"
    JOIN = "join"
    EXTEND = "extend"
    CHAIN = "chain"
    HOIST = "hoist"
    CACHE = "cache"
    TUPLES = "tuples"
    COLUMNS = "columns"
    VALUES = "values"
    COLUMN = "column"
    CONCAT = "concat"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A piece of a unit's text: its 0-based ``line`` in there, and the text itself on one line."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class CostOrigin:
    """A place that makes a cost large, and the loops around it that repeat it.

    Its cost grows faster than in proportion to the sizes, or each item costs more than it has to. ``terms`` add up to
    what it costs at any sizes, repetitions included. ``cure`` is what usually replaces it, where the text shows it.
    """

    place: SourceLine
    loops: tuple[SourceLine, ...] = ()
    cure: Cure | None = None
    terms: tuple[CostTerm, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class CostFacts:
    """The facts of the text about one metric.

    ``known`` is the part that the text fixes; ``typical`` adds typical sizes and costs for what it does not fix, and
    ``large`` large sizes.
    ``growth`` lists the inputs that the leading term depends on, the fastest first. ``terms`` add up to the cost at any
    sizes; empty for a cost that depends on no size, which is ``known``. ``origins`` are the places that make a latency
    grow faster than in proportion to sizes or that a cure makes faster for each item, the most expensive first.
    """

    known: Amount = Amount()
    typical: float = 0.0
    large: float = 0.0
    growth: tuple[Growth, ...] = ()
    causes: tuple[Cause, ...] = ()
    # Not in what is printed: texts with facts are keys of caches, and what is predicted of them is the same.
    terms: tuple[CostTerm, ...] = field(default=(), repr=False)
    origins: tuple[CostOrigin, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class UnknownCalls:
    """The calls of one name, or operations, whose cost is not known; ``terms`` add up to their number at any sizes."""

    name: str
    terms: tuple[CostTerm, ...]


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """The result of the cost analysis of a unit, without a model; computing and waiting are separate.

    ``unknown_calls`` is the expected number of executed calls whose cost is not known, ``unknown_sizes`` the number of
    sizes that the text does not fix, ``opaque`` that of operations on objects of unknown types, which may run any code.
    ``unknown`` names the calls (``fetch()``) and operations (``+``) in these two, the most frequent first, with how
    often each runs at typical sizes, ``repeated`` those whose number depends on sizes, and ``types`` the types of
    parameters that the text shows, as type hints.
    ``endless`` is the line of a loop or recursion that may not end, ``nodes`` how much syntax was read, and
    ``loop_waits`` the waits in loops over inputs. Some of these are known by their names only, and not in ``waits``.
    """

    latency: CostFacts = CostFacts()
    memory: CostFacts = CostFacts()
    waits: tuple[Wait, ...] = ()
    endless: int | None = None
    unknown_calls: float = 0.0
    unknown_sizes: int = 0
    opaque: float = 0.0
    nodes: int = 0
    unknown: tuple[tuple[str, float], ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    repeated: tuple[UnknownCalls, ...] = field(default=(), repr=False)
    loop_waits: tuple[LoopWait, ...] = field(default=(), repr=False)

    def __hash__(self) -> int:
        # Texts with facts are keys of caches: facts that differ nearly always differ in these.
        return hash((self.latency.known, self.memory.known, self.unknown_calls, self.nodes))

    @property
    def fixed(self) -> bool:
        """True if the text fixes the cost: every size, every call and every operation is known."""
        return not (self.unknown_calls or self.unknown_sizes or self.opaque)

    def of(self, metric: str) -> CostFacts:
        """The facts about latency or memory."""
        return self.memory if metric == "memory" else self.latency
