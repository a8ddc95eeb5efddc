"""Predictions: quantiles, bands, growth, and why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, get_args

from .code import CodeText, Query
from .vocabulary import FIXED_TASK, Basis, Metric, NumberSource, exceedance


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
    BEYOND_MEASURED = "beyond-measured"  # metric, device, operators with more work ("": with less)


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
    with ``?``. Empty where they are not known. ``in_worst_case``: some inputs cause it, such as a text made for it or a
    search that finds nothing, but not all.
    """

    growth_class: GrowthClass
    probability: float
    sizes: tuple[str, ...] = ()
    in_worst_case: bool = False

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

    ``moved`` are the bytes that programs load and store, ``distinct`` those of the tensors' parts that they touch (None
    where data decide on the addresses of more than a few bytes), ``flops`` the operations, and ``programs`` their
    number, None where tuning chooses it. ``roofline`` is the time in seconds that bandwidth and peak arithmetic allow
    at least, and ``bound`` what limits the launches most; both are None for a device whose data sheet is incomplete,
    and where ``distinct`` is. ``assumed``: the text has no known launch, and one that covers once what the kernel
    stores is meant: all but what it moves depends on strides and on the size of blocks, which are guesses, and no
    roofline is known. ``is_program``: Triton's IR does not say how many programs run, and the first one is meant.
    """

    moved: AmountRange
    distinct: float | None
    flops: AmountRange
    programs: float | None
    launches: int
    roofline: float | None = None
    bound: LaunchBound | None = None
    assumed: bool = False
    is_program: bool = False

    @property
    def intensity(self) -> float | None:
        """Operations for each distinct byte; None where these are not known."""
        return self.flops.likely / self.distinct if self.distinct else None


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

    ``arithmetic``: the share of the time that grows with multiply-accumulates; ``once``: the share that a batch of any
    size takes, to start kernels and to read weights; the rest moves data. ``operators``: the most expensive ones, of
    ``kernels`` in all.
    """

    arithmetic: float
    operators: tuple[OperatorCost, ...]
    kernels: int
    once: float = 0.0

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
