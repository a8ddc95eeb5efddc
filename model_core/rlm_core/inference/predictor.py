"""The predictor protocol (a batch of texts, each with its queries -> predictions), and what its implementations share.

The embedded student, the full model and the client of a model server implement it; adapted and scaled predictors wrap
another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlm_core.errors import DataError
from rlm_core.queries.judges import JUDGES
from rlm_core.types import METRICS_OF_BASIS, Abstention, AbstentionCode, Basis, CodeText, CostRatio, Prediction, Query

_NAMED_DEVICES = 3


class Predictor(Protocol):
    """Predicts the cost of code. Implementations are safe to call from several threads."""

    @property
    def model_id(self) -> str:
        """Name and version of the weights, as shown to users."""
        ...

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """The queries to ask about a unit by default, with device and workload filled in."""
        ...

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The known devices of a basis, by canonical id; with a language, of programs those judges that know it.

        A predictor that does not know which languages a judge has taught it ignores the language.
        """
        ...

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; the result has the same shape.

        A query that the model was not trained for is answered with ``abstained`` set, never with an exception.
        """
        ...

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """The costs of the second text of ``pairs[i]`` over those of the first, for ``queries[i]``.

        None when the model cannot compare texts.
        """
        ...

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The share of comparable training values (above the floor) that are below the median of a prediction.

        None where values are not comparable, for a median at or below the floor, for a device that the user has added,
        and for a model that does not know its training values.
        """
        ...


class WithoutComparison:
    """For predictors that neither compare texts nor know their training values."""

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """None: this predictor does not compare texts."""
        return None

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """None: this predictor does not know its training values."""
        return None


class PredictorWrapper:
    """For predictors that change another one's answers: all but ``predict`` passes through.

    A ratio of costs is the same on all processors, so comparisons need no correction.
    """

    def __init__(self, base: Predictor) -> None:
        self.base = base

    @property
    def model_id(self) -> str:
        """Name and version of the weights."""
        return self.base.model_id

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """The base's default queries."""
        return self.base.default_queries(basis, language)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The base's devices."""
        return self.base.devices(basis, language)

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]] | None:
        """The base's ratios."""
        return self.base.compare(pairs, queries)

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The base's percentile."""
        return self.base.percentile(prediction, language)


@dataclass(frozen=True, slots=True)
class QueryScope:
    """The queries of a trained model: default queries by basis (or basis/metric) and known devices by basis.

    The default workload of a judge other than that of the default query is under ``basis@judge``, and where its labels
    name a runtime under ``basis/language@judge``.
    """

    defaults: Mapping[str, Mapping[str, Any]]
    devices: Mapping[str, Sequence[str]]

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with the default device and workload."""
        return tuple(self.filled(basis, Query(metric), language) for metric in METRICS_OF_BASIS[basis])

    def filled(self, basis: str, query: Query, language: str = "") -> Query:
        """A query with the defaults in place of what it leaves open, and its device by canonical id.

        A runtime that the labels of a program's judge do not distinguish is left out.
        """
        from rlm_core.queries.devices import known_device

        defaults = self.defaults.get(f"{basis}/{query.metric}") or self.defaults.get(basis, {})
        # An accuracy belongs to a data set, not to a device.
        device = (query.device or defaults.get("device")) if query.metric != "accuracy" else None
        if device is not None:
            device = known_device(device, self.devices.get(basis, ()))
        known = self._workload(basis, language, device, defaults)
        asked = query.workload
        if basis == "program" and "runtime" not in known:
            asked = {name: value for name, value in asked.items() if name != "runtime"}
        return Query(query.metric, device, {**known, **asked})

    def _workload(
        self, basis: str, language: str, device: str | None, defaults: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """The default workload for a device; that of a judge is its own."""
        own = self.defaults.get(f"{basis}/{language}@{device}") or self.defaults.get(f"{basis}@{device}")
        if own is None and device in JUDGES and device != defaults.get("device"):
            return {"judge": device}
        workload: Mapping[str, str] = (own or defaults).get("workload", {})
        return workload

    def knows_device(self, basis: str, query: Query) -> bool:
        """Return whether the query's device has training rows, or its metric needs no device."""
        return query.metric == "accuracy" or query.device in self.devices.get(basis, ())

    def lacks_judge(self, basis: str, query: Query) -> bool:
        """Return whether the query is about a program on a judge that has no training rows."""
        return basis == "program" and bool(self.devices.get(basis)) and not self.knows_device(basis, query)

    def unknown_device(self, basis: str, device: str | None) -> Abstention:
        """The reason for a device without training rows."""
        known = self.devices.get(basis, ())
        details = {"basis": basis, "device": str(device), "known": ", ".join(known[:_NAMED_DEVICES])}
        details["others"] = str(max(len(known) - _NAMED_DEVICES, 0))
        return Abstention(AbstentionCode.DEVICE_NOT_TRAINED, details)


def untrained_task(code: CodeText, query: Query) -> Abstention:
    """The reason for a basis, language and metric without training rows; ``judge`` is that of a program."""
    details = {"basis": code.basis, "language": code.language, "metric": query.metric}
    if code.basis == "program" and query.device in JUDGES:
        details["judge"] = JUDGES[query.device].title
    return Abstention(AbstentionCode.TASK_NOT_TRAINED, details)


def too_few_groups(basis: str, groups: int) -> Abstention:
    """The reason for a task with too few held-out groups to calibrate on."""
    from .calibration import MIN_GROUPS

    details = {"basis": basis, "groups": str(groups), "needed": str(MIN_GROUPS)}
    return Abstention(AbstentionCode.TOO_FEW_GROUPS, details)


def judge_date(code: CodeText, query: Query) -> float | Abstention:
    """The judge's date as a decimal year (0 without one), or the reason why text or date cannot be used."""
    from rlm_core.queries.query_vector import decimal_year

    if not code.text.strip():
        return Abstention(AbstentionCode.EMPTY_TEXT)
    try:
        return decimal_year(query.workload)
    except DataError:
        return Abstention(AbstentionCode.INVALID_DATE, {"date": str(query.workload["date"])})
