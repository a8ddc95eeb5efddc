"""The dataclasses that travel between the stages: unit, query, prediction, measurement.

SI units everywhere: latency in seconds, memory in bytes, accuracy as a fraction. Only rendering turns them into µs or
MiB.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, get_args

Basis = Literal["call", "program", "kernel", "module", "network"]
Metric = Literal["latency", "memory", "accuracy"]
UnitKind = Literal["function", "program", "kernel", "module", "network"]

SI_UNIT: dict[str, str] = {"latency": "s", "memory": "B", "accuracy": "1"}
BASIS_OF_KIND: dict[str, Basis] = {
    "function": "call",
    "program": "program",
    "kernel": "kernel",
    "module": "module",
    "network": "network",
}
# Below it the overhead that measuring subtracts is larger than the call itself.
MEASURED_FLOORS: dict[Metric, float] = {"latency": 5e-8, "memory": 0.0, "accuracy": 0.0}
# What a number rests on: a measurement of this text, one of an earlier text times a predicted ratio, or the model.
# ``curve`` is a line through measurements at several sizes.
NumberSource = Literal["measured", "anchored", "curve", "predicted"]
METRICS_OF_BASIS: dict[str, tuple[Metric, ...]] = {
    "call": ("latency", "memory"),
    "program": ("latency", "memory"),
    "kernel": ("latency",),
    "module": ("latency",),
    "network": ("accuracy", "latency"),
}
# The levels of a prediction's quantiles: symmetric about the median, the ends of all bands among them.
LEVELS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
MEDIAN = LEVELS.index(0.5)
# Calibration tasks of texts that fix their cost start so.
FIXED_TASK = "fixed/"
_BELOW_ONE = 1 - 1e-9
DIRECTION_CONFIDENCE = 0.8
"""The share of answers to the question which of two texts costs more that have to be right for it to be answered."""


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of a source text: 0-based lines, columns in UTF-8 bytes, and byte offsets."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a source file that gets predictions.

    ``text`` is what the model reads, with the indentation of its first line removed; ``span`` covers it in the file,
    ``name`` covers the identifier and ``header`` ends where the signature ends (an inlay hint goes there).
    """

    kind: UnitKind
    language: str
    qualname: str
    text: str
    span: Span
    name: Span
    header: Span

    @property
    def basis(self) -> Basis:
        """The kind of measurement that predictions for this unit are about."""
        return BASIS_OF_KIND[self.kind]


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


@dataclass(frozen=True, slots=True)
class CostFacts:
    """The facts of the text about one metric.

    ``known`` is the part that the text fixes; ``typical`` adds typical sizes and costs for what it does not fix, and
    ``large`` large sizes.
    ``growth`` lists the inputs that the leading term depends on, the fastest first. ``terms`` add up to the cost at any
    sizes; empty for a cost that depends on no size, which is ``known``.
    """

    known: Amount = Amount()
    typical: float = 0.0
    large: float = 0.0
    growth: tuple[Growth, ...] = ()
    causes: tuple[Cause, ...] = ()
    # Not in what is printed: texts with facts are keys of caches, and what is predicted of them is the same.
    terms: tuple[CostTerm, ...] = field(default=(), repr=False)


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


# Where the size of a function's input comes from; the first that is known counts.
# ``query`` is a size that a budget or a table asks about, ``calls`` the largest that a call in the project fixes.
SizeSource = Literal["query", "comment", "settings", "recorded", "calls"]


@dataclass(frozen=True, slots=True)
class FixedCalls:
    """Calls of a function in its project: how many fix a size, of how many, and the range of its values."""

    fixed: int
    all: int
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class SizeValue:
    """A size of a function's input: the number of items, or a number itself, and where the value comes from.

    ``name`` is as the analysis names it (``items``, ``rows[]``, ``self.queue``). ``rule`` is the key of the settings
    that gives it, or where else it is written. ``calls`` are those that fix it, of the largest of which the value is.
    """

    name: str
    value: float
    source: SizeSource = "query"
    rule: str = ""
    calls: FixedCalls | None = None


@dataclass(frozen=True, slots=True)
class SizeSpread:
    """The least, median and largest value of a size over the recorded calls of a unit."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class SizedCalls:
    """Calls of a unit with inputs of about the same sizes.

    ``sizes`` are their medians by name, ``median`` is of the metric in SI units over ``calls``. ``scaled`` are calls
    that were made again with larger inputs, not calls of the tests.
    """

    sizes: Mapping[str, float]
    median: float
    calls: int
    scaled: bool = False


class MeasurementMark(StrEnum):
    """Reasons why a measurement may not hold here as it is."""

    OTHER_MACHINE = "other-machine"  # of another processor, and not scaled to this one
    OTHER_PYTHON = "other-python"  # with another minor version than that of the project
    OLD = "old"


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """A measured cost of a unit as it applies here, in SI units: median, 10 % and 90 % quantile over its calls.

    ``calls`` were measured in ``tests`` tests on the processor or GPU ``device`` with ``runtime`` (``cpython-3.12``) on
    ``date`` (YYYY-MM-DD). ``kind`` is that of :class:`rlm_core.measurement.Measurement`. ``workload`` is as a query has
    it, as pairs of name and value. ``cpu_ratio`` is set where a latency was multiplied by it for this machine's CPU.
    ``committed`` is set for a measurement that came with the project. ``sizes`` are those of its calls by name, and
    ``sized`` the calls by their sizes, smallest first. ``tool`` names another tool that measured it, such as cProfile.
    """

    metric: Metric
    median: float
    low: float
    high: float
    calls: int
    tests: int
    kind: str
    device: str
    runtime: str
    date: str
    workload: tuple[tuple[str, str], ...] = ()
    cpu_ratio: float | None = None
    marks: tuple[MeasurementMark, ...] = ()
    committed: bool = False
    sizes: tuple[tuple[str, SizeSpread], ...] = ()
    sized: tuple[SizedCalls, ...] = field(default=(), hash=False)
    tool: str = ""


class FoundCost(NamedTuple):
    """A measured cost of a unit, and the text that was measured: None for the present one, empty if it is not known."""

    cost: MeasuredCost
    before: str | None


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a unit calls: its source text and its depth in the call graph (1: called directly)."""

    text: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The online judge that a program is written for, by the id of its device, such as ``atcoder``.

    ``is_stated`` is whether a ``# rlm: judge=`` comment names it; otherwise the file looks like it. ``runtime`` is the
    interpreter that the comment names: ``cpython`` or ``pypy``.
    """

    judge: str
    is_stated: bool = False
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class KnownCost:
    """A measured cost of a function in SI units: median, and 10 % and 90 % quantiles over its calls."""

    metric: Metric
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function that a call may run: its source text, what static analysis knows, and what was measured of it.

    ``is_changed``: it was measured, with another text.
    """

    text: str
    work: WorkFacts | None = None
    known: tuple[KnownCost, ...] = ()
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class CallSite:
    """Calls at one place: one of ``candidates`` runs, ``times`` in all by literal trip counts.

    ``loops`` and ``branches`` count what is around the place in its unit.
    """

    candidates: tuple[CalledFunction, ...]
    loops: int = 0
    branches: int = 0
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class MeasuredFunctions:
    """Functions with known costs; a file's units share them."""

    functions: tuple[CalledFunction, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.functions))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a unit: functions of the workspace, and the numbers of other calls.

    ``outside`` counts calls of builtins, of containers and of other packages, ``unresolved`` calls of unknown objects.
    ``of_file`` and ``of_class`` are what was measured in the unit's file and class, ``of_package`` in its package's
    other files.
    """

    sites: tuple[CallSite, ...] = ()
    outside: int = 0
    unresolved: int = 0
    of_file: MeasuredFunctions = MeasuredFunctions()
    of_class: MeasuredFunctions = MeasuredFunctions()
    of_package: MeasuredFunctions = MeasuredFunctions()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Texts with calls are keys of caches, and a unit may call a hundred functions.
        parts = self.sites, self.outside, self.unresolved, self.of_file, self.of_class, self.of_package
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def functions(self) -> tuple[CalledFunction, ...]:
        """All candidates of all sites, site by site."""
        return tuple(function for site in self.sites for function in site.candidates)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CodeText:
    """The predictor's input about one unit: its source, its callees, its language and basis.

    ``workloads`` are those that the unit's file wants to know about, each as pairs of name and value. They say what to
    ask; no number depends on them otherwise. The same is true of ``judge``, the judge of a program's file. ``work`` is
    what static analysis knows; None where there was none. ``measured`` is what was measured of the unit. No model reads
    it: it takes precedence over what they predict, see :mod:`rlm_core.inference.anchoring`. ``calls`` is where costs of
    callees come from; None where calls were not resolved. ``sizes`` are the known sizes of its inputs, for which
    :mod:`rlm_core.inference.sized_predictor` answers.
    """

    text: str
    language: str
    basis: Basis
    callees: tuple[Callee, ...] = ()
    workloads: tuple[tuple[tuple[str, str], ...], ...] = ()
    work: WorkFacts | None = None
    measured: tuple[Anchor, ...] = ()
    judge: JudgeChoice | None = None
    calls: Calls | None = None
    sizes: tuple[SizeValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A measured cost of a unit, and what was measured where the unit or what it calls has changed since, else None."""

    cost: MeasuredCost
    before: CodeText | None = None

    def __hash__(self) -> int:
        # Texts with measurements are keys of caches: measurements that differ nearly always differ in these.
        return hash((self.cost.metric, self.cost.median, self.before and self.before.text))


@dataclass(frozen=True, slots=True)
class Query:
    """The question about a unit: metric, device and workload (judge and date, sizes, dtype, data set).

    ``device=None`` and an empty workload ask for the model's defaults for the unit's basis.
    """

    metric: Metric
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CpuScale:
    """Latencies were multiplied by ``ratio`` for this machine's CPU, whose score was measured on ``date`` (ISO).

    ``waits`` seconds of them were not: no CPU shortens what the text waits at the least.
    """

    ratio: float
    date: str
    waits: float = 0.0


@dataclass(frozen=True, slots=True)
class CalibrationSource:
    """The data on which a band was calibrated, and the changes to the band since.

    ``task`` names the held-out data as in the model's card, from ``call`` (everything of a basis) to
    ``call/python/latency/x86-64``. ``by_data_sheet`` marks a device that had no training rows and is known by its data
    sheet alone. ``adapted_device`` is set when the band rests on measurements on that device instead of held-out data.
    """

    task: str = ""
    by_data_sheet: bool = False
    adapted_device: str | None = None
    cpu_scale: CpuScale | None = None
    uncalibrated: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A calibrated interval in SI units. ``low`` is 0 when the value may be at or below the metric's floor.

    ``groups`` and ``rows`` count the held-out groups and rows behind the calibration; ``source`` describes them.
    """

    low: float
    high: float
    coverage: float
    groups: int = 0
    rows: int = 0
    source: CalibrationSource = CalibrationSource()


class AbstentionCode(StrEnum):
    """Reasons why a query has no number. Each comment lists the keys of :attr:`Abstention.details`."""

    TASK_NOT_TRAINED = "task-not-trained"  # basis, language, metric; of a program also judge (its title)
    DEVICE_NOT_TRAINED = "device-not-trained"  # basis, device, known (the first names), others (how many more)
    SETTING_NOT_TRAINED = "setting-not-trained"  # metric, workload, device ("" for none)
    EMPTY_TEXT = "empty-text"
    INVALID_DATE = "invalid-date"  # date
    UNLIKE_TRAINING_DATA = "unlike-training-data"  # distance, limit, basis
    SIZES_UNKNOWN = "sizes-unknown"  # basis, language, example (sizes as in a comment)
    TOO_FEW_GROUPS = "too-few-groups"  # basis, groups, needed
    RATIO_NOT_CALIBRATED = "ratio-not-calibrated"  # basis, metric
    NO_NUMBER = "no-number"
    NOT_AT_SIZES = "not-at-sizes"  # sizes (as in a budget), unit
    ADAPTER_UNUSABLE = "adapter-unusable"  # problem
    TEXT_TOO_LONG = "text-too-long"  # limit (characters, callees included)
    REQUEST_TOO_LARGE = "request-too-large"  # size, limit (bytes)
    SERVER_UNAVAILABLE = "server-unavailable"  # url, problem
    MODEL_FAILED = "model-failed"  # error (the exception's class)
    MAY_NOT_END = "may-not-end"
    UNKNOWN_CALL = "unknown-call"  # call
    ANALYSIS_FAILED = "analysis-failed"  # error (the exception's class)
    TOO_COMPLEX = "too-complex"
    SIZES_FIXED = "sizes-fixed"
    BATCH_NOT_MEASURED = "batch-not-measured"  # batch, device, least, most
    OPEN_SIZES = "open-sizes"  # share (of the operators)
    OTHER_IMAGE_SIZE = "other-image-size"  # dataset, side (pixels of the network's input), usual
    TOO_LARGE = "too-large"  # gmacs (1e9 multiply-accumulates), most
    OPERATOR_NOT_MEASURED = "operator-not-measured"  # operators ("" for none), device


@dataclass(frozen=True, slots=True)
class Abstention:
    """The typed reason for a missing number; ``rlm_lsp.rendering.abstentions`` turns it into a sentence.

    ``details`` are the values that the sentence names, see :class:`AbstentionCode`. ``known_device`` is set when the
    query is about an adapted device and this known device, on whose prediction the answer rests, has no number.
    """

    code: AbstentionCode
    details: Mapping[str, str] = field(default_factory=dict)
    known_device: str | None = None

    def __hash__(self) -> int:
        return hash((self.code, tuple(sorted(self.details.items())), self.known_device))

    def __str__(self) -> str:
        return self.code.value


GrowthClass = Literal["1", "log n", "sqrt n", "n", "n log n", "mn", "n^2", "n^3", "2^n", "other"]
GROWTH_CLASSES: tuple[GrowthClass, ...] = get_args(GrowthClass)
# The least probability of a growth class that is shown to anyone, in any form.
LEAST_GROWTH = 0.8


@dataclass(frozen=True, slots=True)
class GrowthEstimate:
    """The growth of a cost: the most likely class, its calibrated probability, and the inputs by name.

    ``sizes`` are the inputs that the leading term depends on, as the text names them; those that it does not name start
    with ``?``. Empty where they are not known.
    """

    growth_class: GrowthClass
    probability: float
    sizes: tuple[str, ...] = ()

    @property
    def is_claim(self) -> bool:
        """True if the class is certain enough to be shown."""
        return self.growth_class != "other" and self.probability >= LEAST_GROWTH

    @property
    def named_sizes(self) -> tuple[str, ...]:
        """The sizes that the text names."""
        return tuple(size for size in self.sizes if not size.startswith("?"))


class HoldsFor(StrEnum):
    """The inputs for which the cost of a function holds."""

    SMALL_INPUTS = "small inputs"  # like those of a project's tests
    MEASURED_SIZES = "measured sizes"
    GIVEN_SIZES = "given sizes"
    ALL_INPUTS = "all inputs"  # the text fixes the cost


LaunchBound = Literal["bandwidth", "compute", "launch", "occupancy"]


@dataclass(frozen=True, slots=True)
class AmountRange:
    """An amount of bytes or operations: at least, likely, and at most where data decide."""

    least: float
    likely: float
    most: float


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """What the launches of a kernel do at given sizes, read from the text, and the roofline of a device for it.

    ``moved`` are the bytes that programs load and store, ``distinct`` those of the tensors' parts that they touch, and
    ``flops`` the operations. ``roofline`` is the time in seconds that bandwidth and peak arithmetic allow at least, and
    ``bound`` what limits the launches most; both are None for a device whose data sheet is incomplete.
    """

    moved: AmountRange
    distinct: float
    flops: AmountRange
    programs: float
    launches: int
    roofline: float | None = None
    bound: LaunchBound | None = None

    @property
    def intensity(self) -> float:
        """Operations for each byte that memory must move at least."""
        return self.flops.likely / self.distinct if self.distinct else math.inf


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """An operator of a network: its name for people, how often the network has it, its seconds and their share."""

    name: str
    count: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class NetworkParts:
    """The parts of a network's latency on a device where it is a sum over kernels.

    ``arithmetic``: the share of the time that grows with multiply-accumulates; the rest moves data. ``operators``: the
    most expensive ones, of ``kernels`` in all.
    """

    arithmetic: float
    operators: tuple[OperatorCost, ...]
    kernels: int

    @property
    def bound(self) -> Literal["compute", "bandwidth"]:
        """What limits the network: arithmetic, or the bandwidth of the memory."""
        return "compute" if self.arithmetic >= 0.5 else "bandwidth"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one query, in SI units, or the reason why the model abstains.

    ``median`` is 0 when the value is most likely at or below ``floor``, the smallest value that the measurement
    resolves. ``bands`` are ordered by coverage, the default (80 %) first. ``quantiles`` are those at ``LEVELS``,
    calibrated like the bands, whose ends are among them; empty when the model abstains. ``growth`` is known for latency
    and memory of functions and programs; an abstention may have it too. ``parts`` are known for latencies of networks
    that are sums over kernels.
    and memory of functions and programs; an abstention may have it too. ``launch`` is known for kernels whose text and
    sizes fix what their launches do.
    """

    basis: Basis
    metric: Metric
    device: str | None
    workload: Mapping[str, str]
    model: str
    median: float | None
    bands: tuple[Band, ...]
    floor: float
    truncated: bool
    abstained: Abstention | None = None
    quantiles: tuple[float, ...] = ()
    growth: GrowthEstimate | None = None
    parts: NetworkParts | None = None
    launch: LaunchCost | None = None

    @classmethod
    def missing(cls, code: CodeText, query: Query, model: str, reason: Abstention) -> Prediction:
        """The answer to a query that gets no number."""
        return cls(code.basis, query.metric, query.device, query.workload, model, None, (), 0.0, False, reason)

    @property
    def transient(self) -> bool:
        """True if a model server could not be reached: the answer is not about the text and is not cached for long."""
        return self.abstained is not None and self.abstained.code is AbstentionCode.SERVER_UNAVAILABLE

    def above(self, value: float) -> float:
        """The calibrated probability that the cost is above ``value`` (SI units); NaN where none is known."""
        if self.uncalibrated:
            return math.nan
        return exceedance(self.quantiles, value, self.floor)

    @property
    def band(self) -> Band | None:
        """The default band, None when the model abstains."""
        return self.bands[0] if self.bands else None

    @property
    def uncalibrated(self) -> bool:
        """True if the bands are the model's own intervals, which were not checked on any data."""
        return bool(self.bands) and self.bands[0].source.uncalibrated

    @property
    def source(self) -> NumberSource:
        """The source of the number."""
        return "predicted"

    @property
    def holds_for(self) -> HoldsFor | None:
        """The inputs for which the number holds; None without a number, and for what is asked about at a workload."""
        if self.basis != "call" or self.median is None:
            return None
        is_fixed = self.bands and self.bands[0].source.task.startswith(FIXED_TASK)
        return HoldsFor.ALL_INPUTS if is_fixed else HoldsFor.SMALL_INPUTS


@dataclass(frozen=True, slots=True)
class Crossing:
    """The value of a size from which on another one of two texts costs less: the second where ``is_second``."""

    size: str
    value: float
    is_second: bool


@dataclass(frozen=True, slots=True)
class CostRatio:
    """A cost after an edit over the cost before it, or why it is unknown; ``quantiles`` are those at ``LEVELS``.

    ``agreed`` is the log10 change of a function on which the model and the work facts agree; None where the ratio does
    not rest on both. ``is_decided``: the texts show which of them costs more. ``sizes`` are those at which the costs
    were compared; empty for small inputs. ``crossing`` is known where both texts fix everything but one size.
    """

    basis: Basis
    metric: Metric
    device: str | None
    model: str
    ratio: float | None
    bands: tuple[Band, ...]
    quantiles: tuple[float, ...] = ()
    abstained: Abstention | None = None
    agreed: float | None = None
    is_decided: bool = True
    sizes: tuple[SizeValue, ...] = ()
    crossing: Crossing | None = None

    def above(self, ratio: float) -> float:
        """The calibrated probability of a larger ratio; NaN when the model abstains."""
        return exceedance(self.quantiles, ratio)

    @property
    def direction(self) -> Literal["higher", "lower"] | None:
        """Which way the cost changes, if at least 80 % of such answers are right; None where it is unknown."""
        if not self.is_decided:
            return None
        # A ratio of certainly 1 has none.
        if self.above(1.0) >= DIRECTION_CONFIDENCE:
            return "higher"
        return "lower" if 1 - self.above(_BELOW_ONE) >= DIRECTION_CONFIDENCE else None

    def has_grown(self, ratio: float, probability: float) -> bool:
        """Return whether the cost is certainly at least ``ratio`` times what it was.

        That is never said of two texts of a function that leave anything unknown: by how much their cost changes is
        not known well enough.
        """
        return self.agreed is None and self.above(ratio) >= probability

    def has_fallen(self, ratio: float, probability: float) -> bool:
        """Return whether the cost was certainly at least ``ratio`` times what it is; see :meth:`has_grown`."""
        return self.agreed is None and 1 - self.above(1 / ratio) >= probability


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPrediction(Prediction):
    """The answer to a query about a unit that was measured, now or before it changed.

    ``bands`` describe calls: the measured 10 % to 90 % quantiles, joined with the band of ``ratio`` where the text or
    what it calls has changed since ``cost`` was measured. ``quantiles`` describe the unit's median if it were measured
    again, which is what a budget is compared with. ``predicted`` is the model's answer, which may be an abstention.
    """

    cost: MeasuredCost
    predicted: Prediction
    ratio: CostRatio | None = None

    @property
    def source(self) -> NumberSource:
        """The source of the number."""
        return "measured" if self.ratio is None else "anchored"

    @property
    def holds_for(self) -> HoldsFor | None:
        """The sizes at which it was measured, where they were recorded."""
        if self.basis != "call":
            return None
        return HoldsFor.MEASURED_SIZES if self.cost.sizes else HoldsFor.SMALL_INPUTS


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often a call of unknown cost runs at given sizes; ``name`` is as it is written, like ``fetch()``."""

    name: str
    times: float


@dataclass(frozen=True, slots=True)
class CostAtSizes:
    """The evidence for a cost at given sizes.

    ``curve``: a line through measurements at several sizes; ``beyond`` is how far the size is above the largest of
    them, at least 1. ``arithmetic``: the text fixes everything but the sizes. Where it does not, the cost is at least
    ``least``, and the calls of unknown cost come on top of it: ``predicted`` is the number at the sizes that functions
    which were measured at several sizes suggest; of a ``bound`` there is none, and the numbers of the prediction are
    still those for small inputs.
    """

    kind: Literal["curve", "arithmetic", "predicted", "bound"]
    sizes: tuple[SizeValue, ...]
    beyond: float = 1.0
    least: float = 0.0
    calls: tuple[CallCount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedPrediction(Prediction):
    """The answer to a query about a function at known sizes of its inputs.

    ``small`` is the answer for inputs like those of tests, measured or predicted.
    """

    at: CostAtSizes
    small: Prediction

    @property
    def source(self) -> NumberSource:
        """The source of the number."""
        kinds: dict[str, NumberSource] = {"curve": "curve", "arithmetic": "predicted", "predicted": "predicted"}
        return kinds.get(self.at.kind, self.small.source)

    def above(self, value: float) -> float:
        """The probability that the cost is above ``value``; of a bound, at least that for small inputs."""
        if self.at.least > value:
            return LEVELS[-1]
        return Prediction.above(self, value)

    @property
    def holds_for(self) -> HoldsFor | None:
        """The given sizes; of a bound, the inputs for which its number holds."""
        return self.small.holds_for if self.at.kind == "bound" else HoldsFor.GIVEN_SIZES


def small_answer(prediction: Prediction) -> Prediction:
    """The answer for inputs like those of tests: the prediction itself where it is for no given sizes."""
    return prediction.small if isinstance(prediction, SizedPrediction) else prediction


def exceedance(quantiles: tuple[float, ...], value: float, floor: float = 0.0) -> float:
    """The probability above ``value`` under positive quantiles at ``LEVELS``; NaN without quantiles.

    Between quantiles it is interpolated in the logarithm; beyond the outermost it is theirs.
    """
    if not quantiles:
        return math.nan
    at = bisect_right(quantiles, value)
    if at in (0, len(LEVELS)):
        return 1 - LEVELS[min(at, len(LEVELS) - 1)]
    low, high = max(quantiles[at - 1], floor), quantiles[at]
    share = math.log(value / low) / math.log(high / low) if 0 < low < min(value, high) < math.inf else 0.0
    return 1 - (LEVELS[at - 1] + min(share, 1.0) * (LEVELS[at] - LEVELS[at - 1]))
