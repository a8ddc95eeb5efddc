"""How a full model is asked: which queries it answers, what it reads for them, and what its number means.

Models that ``rlm-lsp train`` wrote read canonical text and a query vector (:class:`TrainedAsking`). Converted ones read
the text behind the prefix of the data set that the query is about (:class:`SpaceAsking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rlm_core.inference.calibration import INTERVALS, MIN_GROUPS, TaskCalibration
from rlm_core.inference.model_store import space_task
from rlm_core.inference.predictor import QueryScope, judge_date, too_few_groups, untrained_task
from rlm_core.queries.query_vector import task_name
from rlm_core.source.canonical import canonical
from rlm_core.types import METRICS_OF_BASIS, Abstention, AbstentionCode, Basis, CodeText, Query

from .encoders.base import reading
from .query_tokens import NumberQuery
from .spaces import Space, codenet_language
from .store import Serving

# The raw distribution: its own quantiles, which nothing was checked on.
UNCALIBRATED = TaskCalibration("", INTERVALS, 0, 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query about a text as the model gets it.

    Attributes:
        text: what it reads.
        query: the meaning of the number; None for a model without query vectors.
        level: the calibration.
        unit: SI units of 1 of its answer.
        floor: the smallest value that is resolved, in SI units.
        max_tokens: how much of the text is read; None for as much as the model can.
    """

    text: str
    query: NumberQuery | None
    level: TaskCalibration
    unit: float = 1.0
    floor: float = 0.0
    max_tokens: int | None = None


class Asking(Protocol):
    """The queries that a model can answer."""

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The known devices of a basis."""
        ...

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """One query per metric of the basis, with device and workload filled in."""
        ...

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """A query with the defaults in place of what it leaves open."""
        ...

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """A complete query as the model gets it, or why it gets none."""
        ...


class TrainedAsking:
    """Asks a model that was trained here; ``languages`` are those that its query vectors know."""

    def __init__(self, serving: Serving, languages: Sequence[str]) -> None:
        self._serving, self._languages = serving, frozenset(languages)
        self._scope = QueryScope(serving.defaults, serving.devices)

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """See :class:`Asking`."""
        return tuple(self._serving.devices.get(basis, ()))

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """See :class:`Asking`."""
        return self._scope.default_queries(basis, language)

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """See :class:`Asking`."""
        return self._scope.filled(basis, query, language)

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """See :class:`Asking`."""
        name = task_name(code.basis, code.language, query.metric, query.device)
        # The tasks of a program are those of its judge, so an unknown judge is the reason.
        untrained = name not in self._serving.floors and not self._scope.lacks_judge(code.basis, query)
        if untrained or code.language not in self._languages:
            return untrained_task(code, query)
        if not self._scope.knows_device(code.basis, query):
            return self._scope.unknown_device(code.basis, query.device)
        date = judge_date(code, query)
        if isinstance(date, Abstention):
            return date
        level = self._serving.calibration.lookup(code.basis, code.language, query.metric, query.device or "")
        if level is None or level.groups < MIN_GROUPS:
            return too_few_groups(code.basis, level.groups if level is not None else 0)
        number_query = NumberQuery.of(query, code.basis, code.language)
        return Asked(self._reading(code), number_query, level, floor=self._serving.floors[name])

    def _reading(self, code: CodeText) -> str:
        near = sorted(code.callees, key=lambda callee: callee.depth)[: self._serving.callees]
        called = [canonical(callee.text, code.language) for callee in near]
        return reading(canonical(code.text, code.language), code.language, called, self._serving.callees)


class SpaceAsking:
    """Asks a converted model about the data sets that it was trained on."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._scope = QueryScope({}, {})

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """See :class:`Asking`."""
        return tuple(
            dict.fromkeys(space.device for space in self._serving.spaces if space.basis == basis and space.device)
        )

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """See :class:`Asking`."""
        return tuple(self.filled(basis, Query(metric), language) for metric in METRICS_OF_BASIS[basis])

    def filled(self, basis: Basis, query: Query, language: str) -> Query:
        """See :class:`Asking`."""
        space = self.space(basis, query, language)
        if space is None:
            return self._scope.filled(basis, query, language)
        device = query.device or space.device if query.metric != "accuracy" else None
        # The numbers of a space are for its own inputs, whatever sizes the text names.
        return self._scope.filled(basis, Query(query.metric, device, space.workload), language)

    def ask(self, code: CodeText, query: Query) -> Asked | Abstention:
        """See :class:`Asking`."""
        space = self.space(code.basis, query, code.language)
        if space is None:
            return untrained_task(code, query)
        if query.device != space.device and query.metric != "accuracy":
            return QueryScope({}, {code.basis: self.devices(code.basis)}).unknown_device(code.basis, query.device)
        if not code.text.strip():
            return Abstention(AbstentionCode.EMPTY_TEXT)
        # No parent counts: what was measured for one space says nothing about the answers for another.
        level = self._serving.calibration.exactly(task_of(space, code.language)) or UNCALIBRATED
        text = space.reading(code.text, codenet_language(code.language))
        return Asked(text, None, level, space.unit, 0.0, space.max_tokens)

    def space(self, basis: str, query: Query, language: str) -> Space | None:
        """The first space that answers a query."""
        for space in self._serving.spaces:
            if space.answers(basis, query.metric, language, query.workload):
                return space
        return None


def task_of(space: Space, language: str) -> str:
    """The name of the calibration of what a space answers for a language."""
    return space_task(space.basis, language, space.metric, space.device, space.workload)
