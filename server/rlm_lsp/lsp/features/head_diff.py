"""How the units of open documents have changed since git's ``HEAD``: compared in the background, shown when known.

A request never waits for git: it reads what is known, and a refresh follows when there is something new. A changed unit
is compared once, at the first size and on the first device that are asked about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from rlm_core.boundary import each
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, CostRatio, Metric, Prediction, Query

from rlm_lsp.history.comparison import UNCHANGED, GrowthRise, WorkChange, unit_diffs, work_change
from rlm_lsp.lsp.document import Analysis
from rlm_lsp.lsp.prediction_service import PredictionService
from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.growth_words import rise_mark
from rlm_lsp.rendering.hint_label import Marks
from rlm_lsp.settings.model import Settings

# A document that stays as it is: HEAD is read again after this time, with the next request.
RECHECK_SECONDS = 1.0
STEP_PAIRS = 16

UnitDiffs = Mapping[tuple[str, CodeText], "HeadDiff"]


@dataclass(frozen=True, slots=True)
class HeadDiff:
    """A unit compared with ``HEAD``; ``changes`` are those of a changed unit's costs, one per metric."""

    state: Literal["new", "same", "changed"]
    changes: tuple[CostRatio, ...] = ()
    work: WorkChange = UNCHANGED


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs from which the diffs of a document were computed."""

    analysis: Analysis
    before: tuple[AnalysedUnit, ...]
    model: str
    selection: QuerySelection

    def gives_the_same_as(self, other: _Inputs) -> bool:
        """Return whether ``other`` gives the same diffs. Analyses and units at HEAD are cached: identity is enough."""
        same_texts = self.analysis is other.analysis and self.before is other.before
        return same_texts and (self.model, self.selection) == (other.model, other.selection)


class HeadDiffs:
    """The diffs of all open documents; lives on the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, tuple[_Inputs, UnitDiffs]] = {}
        self._updated: dict[str, tuple[Analysis, float]] = {}
        self._running: dict[str, Analysis] = {}
        session.on_close(self.forget)
        session.on_clear(self.clear)

    def of(self, uri: str, unit: AnalysedUnit) -> HeadDiff | None:
        """The diff of a unit of a document; None if it is not known yet, or turned off by the settings."""
        known = self._known.get(uri)
        if known is None or not self._session.settings_for(uri).changes:
            return None
        return known[1].get((unit.unit.qualname, unit.code))

    def state_of(self, uri: str) -> object:
        """The diffs of a document: a new object whenever something has changed."""
        return self._known.get(uri)

    def update(self, analysis: Analysis) -> None:
        """Compare the units of a document in the background, unless that is known or running."""
        document, now = analysis.document, asyncio.get_running_loop().time()
        uri = document.uri
        if document.path is None or not analysis.units or not self._session.settings_for(uri).changes:
            return
        before, at = self._updated.get(uri, (None, 0.0))
        if self._running.get(uri) is analysis or (before is analysis and now - at < RECHECK_SECONDS):
            return
        self._updated[uri], self._running[uri] = (analysis, now), analysis
        self._session.spawn(f"head diff of {uri}", self._run(analysis))

    async def compare(self, analysis: Analysis) -> bool:
        """Compare the units of a document now; False where git cannot, or the settings turn it off."""
        uri = analysis.document.uri
        if analysis.document.path is None or not self._session.settings_for(uri).changes:
            return False
        await self._find(analysis)
        return uri in self._known

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._session.cancel(f"head diff of {uri}")
        for entries in (self._known, self._updated, self._running):
            entries.pop(uri, None)

    def clear(self) -> None:
        """Forget all documents."""
        for uri in list(self._updated):
            self.forget(uri)

    async def _run(self, analysis: Analysis) -> None:
        uri = analysis.document.uri
        try:
            await self._find(analysis)
        finally:
            if self._running.get(uri) is analysis:
                del self._running[uri]

    async def _find(self, analysis: Analysis) -> None:
        session, document = self._session, analysis.document
        # Typing goes on for a while, and the predictions of the units come first.
        await asyncio.sleep(session.settings.debounce_ms / 1000)
        model = await session.predictions.run(_comparing_model)
        before = await session.units_at_head(document) if model is not None else None
        if model is None or before is None:
            self._put(document.uri, None)
            return
        settings = session.settings_for(document.uri)
        inputs = _Inputs(analysis, before, model, settings.selection)
        known = self._known.get(document.uri)
        if known is None or not known[0].gives_the_same_as(inputs):
            diffs = await self._compare(inputs)
            if session.documents.version_of(document.uri) == document.version:
                self._put(document.uri, (inputs, diffs))

    async def _compare(self, inputs: _Inputs) -> UnitDiffs:
        units = [unit.analysed for unit in inputs.analysis.units]
        comparison = await asyncio.to_thread(unit_diffs, inputs.before, units)
        compared = list(zip(units, comparison, strict=True))
        diffs = {(unit.unit.qualname, unit.code): HeadDiff(diff.state) for unit, diff in compared}
        texts = [(diff.before, unit) for unit, diff in compared if diff.before is not None]
        service = self._session.predictions
        for start in range(0, len(texts), STEP_PAIRS):
            step = texts[start : start + STEP_PAIRS]
            codes = [(before, after.code) for before, after in step]
            answers = await service.run(partial(_cost_changes, service, codes, inputs.selection))
            for (_, after), (changes, work) in zip(step, answers or [((), UNCHANGED)] * len(step), strict=True):
                diffs[after.unit.qualname, after.code] = HeadDiff("changed", changes, work)
        return diffs

    def _put(self, uri: str, known: tuple[_Inputs, UnitDiffs] | None) -> None:
        before = self._known.pop(uri, None)
        if known is not None:
            self._known[uri] = known
        if _visible(before) != _visible(known):
            self._session.on_results.fire()


def marks(diff: HeadDiff | None, predictions: Sequence[Prediction], settings: Settings) -> Marks:
    """The marks for a unit's label, by metric: costs whose change is large and certain enough for the settings.

    A growth class that rises follows the ratio where there is room. A new wait takes precedence over a ratio, which is
    that of computing. A mark of memory says so, since one alone reads as that of time; and where all costs are surely
    about the same, so is the latency.
    """
    if diff is None or diff.state != "changed":
        return {}
    shown = {prediction.metric: prediction.device for prediction in reversed(predictions)}
    changes = [
        change
        for change in comparable(diff.changes, predictions)
        if change.ratio is not None and shown.get(change.metric, "") == change.device
    ]
    by_metric: dict[Metric, tuple[str, ...]] = {
        change.metric: (render.mark(change.ratio, change.metric),)
        for change in changes
        if change.ratio is not None and is_sure(change, settings)
    }
    if any(change.metric == "latency" for change in changes) and all(is_same(change, settings) for change in changes):
        by_metric["latency"] = (render.SAME,)
    for rise in rises(diff, settings):
        if rise.metric in shown:
            before = tuple(mark for mark in by_metric.get(rise.metric, ()) if mark != render.SAME)
            by_metric[rise.metric] = (*(f"{mark}, {rise_mark(rise)}" for mark in before), *before) or (
                f"{render.RISEN} {rise_mark(rise)}",
                render.RISEN,
            )
    wait = diff.work.wait
    if wait is not None and "latency" in shown:
        if wait.is_new:
            by_metric["latency"] = (f"{render.RISEN} new", render.RISEN)
        elif wait.seconds is not None and by_metric.get("latency", (render.SAME,)) == (render.SAME,):
            by_metric["latency"] = (render.mark(wait.seconds[1] / wait.seconds[0]),)
    return by_metric


def comparable(changes: Sequence[CostRatio], predictions: Sequence[Prediction]) -> list[CostRatio]:
    """The changes of costs that are large enough to have a ratio; of a cost without a prediction too."""
    ends = {prediction.metric: render.is_upper_end(prediction) for prediction in reversed(predictions)}
    return [change for change in changes if not ends.get(change.metric, False)]


def rises(diff: HeadDiff, settings: Settings) -> list[GrowthRise]:
    """The growth classes that have risen, as far as both sides are certain enough for the settings."""
    return [rise for rise in diff.work.growth if rise.probability >= settings.growth_confidence]


def is_same(change: CostRatio, settings: Settings) -> bool:
    """Return whether a cost has neither grown nor fallen by the settings' ratio, with the settings' confidence."""
    inside = change.above(1 / settings.change_ratio) - change.above(settings.change_ratio)
    return inside >= settings.change_confidence


def is_sure(change: CostRatio, settings: Settings) -> bool:
    """Return whether a cost has grown, or fallen, by the settings' ratio with the settings' confidence."""
    ratio, confidence = settings.change_ratio, settings.change_confidence
    return change.has_grown(ratio, confidence) or change.has_fallen(ratio, confidence)


def _comparing_model(predictor: Predictor) -> str | None:
    return predictor.model_id if predictor.compare([], []) is not None else None


def _cost_changes(
    service: PredictionService,
    pairs: Sequence[tuple[CodeText, CodeText]],
    selection: QuerySelection,
    predictor: Predictor,
) -> list[tuple[tuple[CostRatio, ...], WorkChange]] | None:
    """The changes between pairs of texts; runs on the model's worker. A pair that fails has no changes.

    None where the model cannot compare.
    """
    changes = each(
        "the comparison of a unit with HEAD",
        pairs,
        lambda some: _changes(service, some, selection, predictor) or [None] * len(some),
        lambda pair, error: ((), UNCHANGED),
    )
    known = [change for change in changes if change is not None]
    return known if len(known) == len(changes) else None


def _changes(
    service: PredictionService,
    pairs: Sequence[tuple[CodeText, CodeText]],
    selection: QuerySelection,
    predictor: Predictor,
) -> list[tuple[tuple[CostRatio, ...], WorkChange]] | None:
    queries = [_first_costs(queries_for(predictor, after, selection)) for _, after in pairs]
    ratios = service.compare(predictor, [(*pair, line) for pair, line in zip(pairs, queries, strict=True)])
    if ratios is None:
        return None
    # The text at HEAD stays while the user types, so its prediction is in the cache.
    earlier, newer = (
        service.answer(predictor, [(pair[side], line) for pair, line in zip(pairs, queries, strict=True)])
        for side in (0, 1)
    )
    works = [work_change(*pair, answers) for pair, answers in zip(pairs, zip(earlier, newer, strict=True), strict=True)]
    return list(zip(ratios, works, strict=True))


def _first_costs(queries: Sequence[Query]) -> list[Query]:
    """The first query of each metric that is a cost."""
    first = {query.metric: query for query in reversed(queries) if query.metric != "accuracy"}
    return list(first.values())[::-1]


def _visible(known: tuple[_Inputs, UnitDiffs] | None) -> UnitDiffs:
    """The diffs that the client shows."""
    return {key: diff for key, diff in known[1].items() if diff.state != "same"} if known is not None else {}
