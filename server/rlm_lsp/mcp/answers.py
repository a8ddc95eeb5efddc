"""The structured answers of the tools, from which their JSON schemas are made. Values are in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field
from rlm_core.types import Basis, Cure, GrowthClass, Metric, SizeSource

from rlm_lsp.findings.finding import Code
from rlm_lsp.settings.model import Severity

METRICS: tuple[Metric, ...] = get_args(Metric)


class Answer(BaseModel):
    """Made of fields that other parts of the program have under the same names; their other fields are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class GrowthAnswer(Answer):
    """How a cost grows with the inputs."""

    growth_class: GrowthClass = Field(alias="class", description="Such as n or n^2")
    probability: float = Field(description="Calibrated probability of the class")
    sizes: list[str] = Field(description="The inputs that it depends on, as the code names them")
    in_worst_case: bool = Field(
        description="True if only some inputs cause it, such as a text made for it or a search that finds nothing"
    )


class LineAnswer(Answer):
    """A piece of the text: its line, 1-based, and what it says."""

    line: int
    text: str


class OriginAnswer(LineAnswer):
    """A place that makes a latency grow, the loops that repeat it, and what usually makes it grow less."""

    loops: list[LineAnswer]
    cure: Cure | None


class FixedCallsAnswer(Answer):
    """Calls in the project that fix a size: how many, of how many, and the range of its values."""

    fixed: int
    all: int
    least: float
    most: float


class SizeAnswer(Answer):
    """A size of an input: its value, or the range over the measured calls."""

    source: SizeSource
    value: float | None = None
    rule: str = Field(
        "", description="Where the value is written: a key of the settings, a line, or the calling function"
    )
    calls: FixedCallsAnswer | None = None
    least: float | None = None
    median: float | None = None
    most: float | None = None


class CurveAnswer(Answer):
    """The cost is the coefficient times the size to the exponent, from ``from`` to ``holds_to``."""

    size: str
    exponent: float
    coefficient: float
    smallest: float = Field(alias="from")
    measured_to: float
    holds_to: float


class BoundAnswer(Answer):
    """A call takes at least this; the calls by name come on top of it, so many times."""

    least: float
    calls: Mapping[str, float]


class CrossingAnswer(Answer):
    """From this value of the size on the second text costs less, or more where ``is_second`` is false."""

    size: str
    value: float
    is_second: bool


class PredictionRow(Answer):
    """One prediction for one unit."""

    file: str = Field(description="Relative to its root; empty for a text")
    line: int = Field(description="Line of the unit's name, 1-based")
    qualname: str
    basis: Basis = Field(description="What the number is about: one call, a whole program, a launch, a pass")
    metric: Metric
    unit: str = Field(description="s, B, or 1 for a fraction")
    median: float | None = Field(description="None where the model abstains")
    low: float | None = Field(description="Lower end of the band")
    high: float | None = Field(description="Upper end of the band; None without a bound")
    coverage: float | None = Field(description="Share of true values that the band is calibrated to contain")
    device: str | None
    workload: Mapping[str, str]
    source: Literal["measured", "anchored", "curve", "predicted"] = Field(
        description="Measured, carried over from a measurement of an earlier text, on a curve through measurements at"
        " several sizes, or predicted"
    )
    holds_for: str | None = Field(description="Of a function: small inputs, measured sizes, given sizes or all inputs")
    evidence: Literal["curve", "arithmetic", "predicted", "bound"] | None = Field(
        description="What supports a cost at given sizes: measurements at several sizes, a text that fixes the rest, or"
        " functions that were measured at several sizes; a bound says only the least"
    )
    sizes: Mapping[str, SizeAnswer] = Field(description="The given or recorded sizes of inputs")
    curve: CurveAnswer | None = Field(description="The measured cost as a function of one size")
    bound: BoundAnswer | None = Field(description="The least cost at the given sizes, where calls are of unknown cost")
    growth: GrowthAnswer | None
    growth_from: list[OriginAnswer] = Field(description="The places that make a latency grow faster than in proportion")
    curable: list[OriginAnswer] = Field(
        description="The places with a large part of a latency at which a known rewrite makes each item cost less"
    )
    abstained: str | None = Field(description="Why there is no number")
    analysis_failed: str | None = Field(
        description="Error for which the number is from the text alone; None where the analysis succeeded"
    )


class UnreadFiles(Answer):
    """Files of a folder that were not read."""

    path: str = Field(description="A path to predict next")
    files: int


class Predictions(Answer):
    """The answer of ``predict``."""

    units: int = Field(description="Units that were predicted")
    omitted: int = Field(description="Units beyond the limit, whose rows are left out")
    rows: list[PredictionRow] = Field(description="The most expensive unit first")
    failed: list[str] = Field(description="Files that could not be read, and why")
    unread: list[UnreadFiles] = Field(description="What was left out because the folder has too many units")


class RatioRow(Answer):
    """A cost of one unit after a change over the cost before it."""

    qualname: str
    metric: Metric
    device: str | None
    state: Literal["changed", "same"] = Field(description="same: the model sees no difference, so the ratio is 1")
    direction: Literal["higher", "lower"] | None = Field(
        description="Which way the cost changes; None where it is not known with 80 % probability"
    )
    ratio: float | None = Field(description="Predicted cost after over cost before; None where the model abstains")
    low: float | None = Field(description="Lower end of the ratio's band")
    high: float | None = Field(description="Upper end of the ratio's band; None without a bound")
    coverage: float | None = Field(description="Share of true ratios that the band is calibrated to contain")
    probability_higher: float | None = Field(description="Probability of a ratio above 1; None where none is known")
    sizes: Mapping[str, float] = Field(description="The sizes at which the costs were compared; empty: small inputs")
    crossing: CrossingAnswer | None = Field(description="The size at which the cheaper text changes, if there is one")
    growth_before: GrowthAnswer | None
    growth_after: GrowthAnswer | None
    launch_before: Mapping[str, Any] | None = Field(
        description="Bytes, operations and programs of a kernel's launches before the change, if its text fixes them"
    )
    launch_after: Mapping[str, Any] | None = Field(description="The same after the change")
    abstained: str | None = Field(description="Why there is no ratio")


class Comparison(Answer):
    """The answer of ``compare``."""

    rows: list[RatioRow]
    unchanged: list[str] = Field(description="Units with the same text, callees and facts on both sides")
    new: list[str] = Field(description="Units of the second side that the first does not have")


class CandidateAnswer(Answer):
    """A candidate by its place in the request, from 0, and the places of those that are known to be faster."""

    place: int
    slower_than: list[int]


class RankingAnswer(Answer):
    """The answer of ``rank``."""

    candidates: list[CandidateAnswer] = Field(description="Those to measure first")
    measure: int = Field(description="How many of the first to measure: no other candidate is known to beat these")
    compared: int = Field(description="Pairs of which one is known to be faster")
    pairs: int


class Effect(Answer):
    """The effect of a statement on the prediction."""

    line: int = Field(description="First line of the statement, 1-based")
    last_line: int
    text: str = Field(description="The statement's first line")
    ratio: float = Field(description="The prediction with the statement over the one without it")


class ExplanationAnswer(Answer):
    """The answer of ``explain``; the text has what the code says about the cost."""

    qualname: str
    metric: Metric
    median: float | None
    unit: str
    effects: list[Effect] = Field(description="The strongest first")
    abstained: str | None


class FindingRow(Answer):
    """One finding of ``rlm-lsp check``."""

    code: Code
    severity: Severity
    file: str
    line: int = Field(description="1-based")
    qualname: str
    message: str
    probability: float | None


class CheckAnswer(Answer):
    """The answer of ``check``."""

    files: int = Field(description="Files that were checked")
    with_budget: int = Field(description="Units that have a budget")
    compared: int = Field(description="Units that were compared with the revision")
    committed: int = Field(description="Budgets that were judged by measurements committed with the project")
    findings: list[FindingRow]
    omitted: int = Field(description="Findings beyond the limit")


class MeasureCommand(Answer):
    """The answer of ``measure_command``; nothing was run."""

    command: str = Field(description="A command line for the user to run in a shell: it runs the project's tests")


def finite(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields with None in place of what JSON has no number for."""
    return {
        name: None if isinstance(value, float) and not abs(value) < float("inf") else value
        for name, value in fields.items()
    }
