"""How the units of open documents have changed since git's ``HEAD``: found in the background, shown when it is known.

A request never waits for git: it reads what is known, and a refresh follows when there is news. A unit that has changed
is compared once at the first size and the first device that are asked about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, Metric, Prediction, Query

from rlm_lsp.history.comparison import comparer_of, unit_diffs
from rlm_lsp.history.git import GitError
from rlm_lsp.lsp.documents import Analysis
from rlm_lsp.rendering import values as render
from rlm_lsp.settings.model import Settings

if TYPE_CHECKING:
    from rlm_core.inference.cost_ratio import Change

    from rlm_lsp.lsp.engine import Engine
    from rlm_lsp.lsp.server import Server

# A document that stays as it is: HEAD is looked at again after this time, with the next request.
LOOK_SECONDS = 1.0
STEP_PAIRS = 16

Units = Mapping[tuple[str, CodeText], "HeadDiff"]


@dataclass(frozen=True, slots=True)
class HeadDiff:
    """What a unit is beside ``HEAD``; ``changes`` tell the costs of a changed one, a metric each."""

    state: Literal["new", "same", "changed"]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class _Basis:
    """What changes were found from; they stand as long as it does."""

    analysis: Analysis
    before: tuple[AnalysedUnit, ...]
    model: str
    asked: QuerySelection

    def is_that_of(self, other: _Basis) -> bool:
        """Whether the same would be found from ``other``. Analyses and what was at HEAD are kept, not made anew."""
        same_texts = self.analysis is other.analysis and self.before is other.before
        return same_texts and (self.model, self.asked) == (other.model, other.asked)


class Changes:
    """The changes of all open documents; lives on the event loop."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._found: dict[str, tuple[_Basis, Units]] = {}
        self._looked: dict[str, tuple[Analysis, float]] = {}
        self._under_way: dict[str, Analysis] = {}

    def of(self, uri: str, unit: AnalysedUnit) -> HeadDiff | None:
        """What is known about a unit of a document; None for nothing yet, or where settings do not want it."""
        found = self._found.get(uri)
        if found is None or not self._ls.settings_for(uri).changes:
            return None
        return found[1].get((unit.unit.qualname, unit.code))

    def found(self, uri: str) -> object:
        """What is known about a document as a whole: another object when something has changed."""
        return self._found.get(uri)

    def look(self, analysis: Analysis) -> None:
        """Find in the background how the units of a document have changed, unless that is known or under way."""
        document, now = analysis.document, asyncio.get_running_loop().time()
        uri = document.uri
        if document.path is None or not analysis.units or not self._ls.settings_for(uri).changes:
            return
        before, at = self._looked.get(uri, (None, 0.0))
        if self._under_way.get(uri) is analysis or (before is analysis and now - at < LOOK_SECONDS):
            return
        self._looked[uri], self._under_way[uri] = (analysis, now), analysis
        self._ls.spawn(f"changes of {uri}", self._work(analysis))

    def forget(self, uri: str) -> None:
        """The document is no longer open."""
        self._ls.drop(f"changes of {uri}")
        for known in (self._found, self._looked, self._under_way):
            known.pop(uri, None)

    def clear(self) -> None:
        """Forget all that is known, as the model has been told to."""
        for uri in list(self._looked):
            self.forget(uri)

    async def _work(self, analysis: Analysis) -> None:
        uri = analysis.document.uri
        try:
            await self._find(analysis)
        finally:
            if self._under_way.get(uri) is analysis:
                del self._under_way[uri]

    async def _find(self, analysis: Analysis) -> None:
        ls, document = self._ls, analysis.document
        # Typing goes on for a while, and the predictions of the units come first.
        await asyncio.sleep(ls.settings.debounce_ms / 1000)
        model = await ls.engine.run(_comparing_model)
        before = None
        if model is not None and document.path is not None and document.language is not None:
            try:
                before = await ls.revisions.units(document.path, document.language)
            except GitError as error:
                ls.log_once(f"no comparison with HEAD: {error}")
        if model is None or before is None:
            self._put(document.uri, None)
            return
        settings = ls.settings_for(document.uri)
        basis = _Basis(analysis, before, model, QuerySelection(settings.metrics, settings.devices))
        known = self._found.get(document.uri)
        if known is None or not known[0].is_that_of(basis):
            units = await self._compare(basis)
            if ls.documents.version_of(document.uri) == document.version:
                self._put(document.uri, (basis, units))

    async def _compare(self, basis: _Basis) -> Units:
        units = [placed.analysed for placed in basis.analysis.units]
        diffs = await asyncio.to_thread(unit_diffs, basis.before, units)
        found = {(unit.unit.qualname, unit.code): HeadDiff(diff.state) for unit, diff in zip(units, diffs, strict=True)}
        texts = [(diff.before, unit) for unit, diff in zip(units, diffs, strict=True) if diff.before is not None]
        for start in range(0, len(texts), STEP_PAIRS):
            step = texts[start : start + STEP_PAIRS]
            codes = [(was, after.code) for was, after in step]
            told = await self._ls.engine.run(partial(_ask, self._ls.engine, codes, basis.asked))
            for (_, after), changes in zip(step, told or [()] * len(step), strict=True):
                found[after.unit.qualname, after.code] = HeadDiff("changed", changes)
        return found

    def _put(self, uri: str, found: tuple[_Basis, Units] | None) -> None:
        before = self._found.pop(uri, None)
        if found is not None:
            self._found[uri] = found
        if _shown(before) != _shown(found):
            self._ls.refresh_hints()


def marks(since: HeadDiff | None, predictions: Sequence[Prediction], settings: Settings) -> dict[Metric, str]:
    """The marks of a unit's metrics that have surely enough changed enough, for its label."""
    if since is None or not since.changes:
        return {}
    shown = {prediction.metric: prediction.device for prediction in reversed(predictions)}
    return {
        change.metric: render.mark(change.ratio)
        for change in since.changes
        if change.ratio is not None and shown.get(change.metric, "") == change.device and is_sure(change, settings)
    }


def is_sure(change: Change, settings: Settings) -> bool:
    """Whether a cost has grown, or fallen, by the settings' ratio with their confidence."""
    grown, not_fallen = change.above(settings.change_ratio), change.above(1 / settings.change_ratio)
    return grown >= settings.change_confidence or 1 - not_fallen >= settings.change_confidence


def _comparing_model(predictor: Predictor) -> str | None:
    return predictor.model_id if comparer_of(predictor) is not None else None


def _ask(
    engine: Engine, pairs: Sequence[tuple[CodeText, CodeText]], asked: QuerySelection, predictor: Predictor
) -> list[tuple[Change, ...]] | None:
    """The changes of pairs of texts; for the model's worker."""
    return engine.changes(
        predictor, [(was, after, _costs(queries_for(predictor, after, asked))) for was, after in pairs]
    )


def _costs(queries: Sequence[Query]) -> list[Query]:
    """The first query of each metric that is a cost."""
    first = {query.metric: query for query in reversed(queries) if query.metric != "accuracy"}
    return list(first.values())[::-1]


def _shown(found: tuple[_Basis, Units] | None) -> Units:
    """What can be seen of changes."""
    return {key: since for key, since in found[1].items() if since.state != "same"} if found is not None else {}
