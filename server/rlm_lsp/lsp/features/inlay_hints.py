"""Inlay hints: the predicted cost of a unit after its signature, and how it has changed against git's ``HEAD``.

Cached predictions are answered at once; the others are computed in the background and a refresh follows. The tooltip is
the text of the hover, made when a client resolves the hint; a client that cannot resolve gets a short one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core.boundary import absorb
from rlm_core.types import CodeText, Prediction

from rlm_lsp.findings.relevance import Relevance, growing_most, grows_fast, relevance
from rlm_lsp.lsp.document import Analysis, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.unit_rules import UnitRules
from rlm_lsp.rendering import hint_label
from rlm_lsp.rendering import labels as render
from rlm_lsp.settings.model import Settings

from .code_lens import CodeLenses
from .cpu_offer import CpuOffer
from .head_diff import HeadDiffs, marks
from .hover import Hovers
from .notice import FirstRunNotice

TOGGLE, SHOW_ALL = "rlm-lsp.toggleHints", "rlm-lsp.showAllHints"
_REFRESH = "workspace.inlay_hint.refresh_support"
_SPARE_TEXTS = 64  # hints that are kept of texts that are gone: an undo brings them back
# Clients show the label with a space in front of it, which counts as part of its length.
PADDING = 1
_UNMARKED: hint_label.Marks = {}


class HiddenHints:
    """The hints that the user has turned on and off until the server ends: of files and languages, and all.

    ``all_shown`` shows the hints of all functions, whatever the settings say.
    """

    def __init__(self) -> None:
        self.all_shown = False
        self._hidden: set[tuple[str, str | None]] = set()

    def toggle(self, target: object) -> bool:
        """Hide the hints of ``{"file": URI}`` or ``{"language": NAME}``, or show them; returns whether they are hidden.

        Raises:
            JsonRpcInvalidParams: ``target`` names neither.
        """
        for kind in ("language", "file"):
            if isinstance(target, Mapping) and isinstance(name := target.get(kind), str):
                self._hidden ^= {(kind, name)}
                return (kind, name) in self._hidden
        raise JsonRpcInvalidParams('name a file or a language, like {"file": "file:///a.py"}')

    def hides(self, uri: str, language: str | None) -> bool:
        """Return whether the hints of a document in a language are hidden."""
        return not self._hidden.isdisjoint((("file", uri), ("language", language)))


@dataclass(slots=True)
class _DocumentHints:
    """The hints of one document: by the ``id`` of their units, and by the texts of the units.

    ``growing`` is the function that has a hint since no other has one, known once all are predicted (``is_complete``).
    """

    made_from: tuple[object, ...]
    analysis: Analysis
    context: tuple[object, ...]
    hints: dict[int, types.InlayHint | None] = field(default_factory=dict)
    by_text: dict[CodeText, tuple[object, types.InlayHint | None]] = field(default_factory=dict)
    previous: dict[CodeText, tuple[object, types.InlayHint | None]] = field(default_factory=dict)
    is_complete: bool = False
    growing: LocatedUnit | None = None

    def move(self, unit: LocatedUnit, made_from: object, version: int | None) -> None:
        """Take over the hint of a unit with the same text from the previous analysis, at its new position."""
        code = unit.analysed.code
        known = self.previous.get(code)
        if known is None or known[0] != made_from:
            return
        hint = known[1]
        if hint is not None:
            data = {**hint.data, "version": version} if isinstance(hint.data, dict) else None
            hint = types.InlayHint(unit.hint, hint.label, tooltip=hint.tooltip, padding_left=True, data=data)
        self.hints[id(unit)] = hint
        self.by_text[code] = made_from, hint

    def put(self, unit: LocatedUnit, made_from: object, hint: types.InlayHint | None) -> None:
        """Keep the hint of a unit."""
        self.hints[id(unit)] = hint
        self.by_text[unit.analysed.code] = made_from, hint


class InlayHints:
    """The hints that were made for the newest analysis of each document.

    A client asks for the same hints again with each edit and scroll, and making one costs far more than keeping it. An
    edit moves most units and changes few: the hints of the others are moved along.
    """

    def __init__(
        self, session: Session, head_diffs: HeadDiffs, unit_rules: UnitRules, lenses: CodeLenses, hovers: Hovers
    ) -> None:
        self._session, self._head_diffs, self._rules = session, head_diffs, unit_rules
        self._lenses, self._hovers = lenses, hovers
        self._notice, self._cpu_offer = FirstRunNotice(session), CpuOffer(session)
        self._documents: dict[str, _DocumentHints] = {}
        self.hidden = HiddenHints()

    def forget(self, uri: str) -> None:
        """The document is closed."""
        self._documents.pop(uri, None)

    def refresh(self) -> None:
        """Have the client ask again, if it can."""
        if self._session.capability(_REFRESH):
            self._session.client.workspace_inlay_hint_refresh(None)

    async def hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """The hints of the units in the requested range, as far as they are known."""
        session, uri = self._session, params.text_document.uri
        refreshes = bool(session.capability(_REFRESH))
        lines = range(params.range.start.line, params.range.end.line + 1)
        analysis = await session.analysis(uri, provisional=refreshes, lines=lines)
        settings = session.settings_for(uri)
        if analysis is None or not settings.hints or self.hidden.hides(uri, analysis.document.language):
            return []
        version = analysis.document.version if self._resolves_tooltip else None
        if refreshes:
            self._rules.update(analysis)
        else:
            await self._rules.read(analysis)
        kept = self._kept(analysis, settings)
        requested = [unit for unit in _inside(analysis.units, params.range) if not self._lenses.shows(uri, unit)]
        for unit in requested:
            if id(unit) not in kept.hints:
                kept.move(unit, self._made_from(uri, unit), version)
        missing = [unit for unit in requested if id(unit) not in kept.hints]
        hints = dict(kept.hints)
        shown: list[Prediction] = []
        for unit, predictions in await session.available(analysis, missing, refreshes=refreshes):
            try:
                hint = self._hint(unit, predictions, settings, uri, version)
            except Exception as error:
                absorb(f"the hint of {unit.analysed.unit.qualname}", error)
                hint = None
            hints[id(unit)] = hint
            shown += predictions if hint is not None else ()
            # A transient abstention is not a fact about the text: the model is asked again.
            if not any(prediction.transient for prediction in predictions):
                kept.put(unit, self._made_from(uri, unit), hint)
        self._head_diffs.update(analysis)
        self._notice.give(shown)
        self._cpu_offer.give(shown)
        found = [hint for unit in requested if (hint := hints.get(id(unit))) is not None]
        may_hide = settings.hints_shown == "relevant" and not self.hidden.all_shown
        if may_hide and not found and (growing := self._growing(kept, settings)) in requested:
            known = session.known(uri, growing.analysed.code) or ()
            latency = [prediction for prediction in known if prediction.metric == "latency"]
            hint = inlay_hint(growing, latency, settings, uri=uri, version=version, with_growth=True)
            found = [hint] if hint is not None else []
        functions = [unit for unit in requested if unit.analysed.unit.kind == "function"]
        if may_hide and functions and not found and all(id(unit) in hints for unit in requested):
            self._notice.give_none()
        return found

    async def resolve(self, hint: types.InlayHint) -> types.InlayHint:
        """The hint with its tooltip: the text of the hover. A hint of an older version stays as it is."""
        data = hint.data
        if not isinstance(data, Mapping):
            return hint
        uri = str(data.get("uri"))
        analysis = await self._session.analysis(uri)
        if analysis is None or analysis.document.version != data.get("version"):
            return hint
        units = (unit for unit in analysis.units if unit.analysed.unit.qualname == data.get("unit"))
        unit = next((unit for unit in units if unit.hint == hint.position), None)
        predictions = self._session.known(uri, unit.analysed.code) if unit is not None else None
        if unit is not None and predictions:
            hint.tooltip = await self._hovers.content_of(analysis, unit)
        return hint

    def _hint(
        self, unit: LocatedUnit, predictions: Sequence[Prediction], settings: Settings, uri: str, version: int | None
    ) -> types.InlayHint | None:
        """The hint of a unit, None where it has nothing to show or does not matter enough."""
        diff = self._head_diffs.of(uri, unit.analysed)
        reason = self._relevance(unit, predictions, settings, uri)
        if reason is None and settings.hints_shown == "relevant" and not self.hidden.all_shown:
            return None
        changed, is_fast = marks(diff, predictions, settings), grows_fast(predictions, settings)
        return inlay_hint(unit, predictions, settings, changed, uri, version, with_growth=is_fast)

    def _relevance(
        self, unit: LocatedUnit, predictions: Sequence[Prediction], settings: Settings, uri: str
    ) -> Relevance | None:
        diff, rules = self._head_diffs.of(uri, unit.analysed), self._rules.of(uri, unit.analysed)
        is_edited = diff is not None and diff.state != "same"
        return relevance(unit.analysed.code, predictions, settings, rules, changed=is_edited)

    def _growing(self, kept: _DocumentHints, settings: Settings) -> LocatedUnit | None:
        """The function that has a hint since no other in its file has one; None before all are predicted."""
        if not kept.is_complete:
            uri = kept.analysis.document.uri
            known = [(unit, self._session.known(uri, unit.analysed.code)) for unit in kept.analysis.units]
            answered = [(unit, predictions) for unit, predictions in known if predictions is not None]
            kept.is_complete = len(answered) == len(known)
            if kept.is_complete and not any(self._relevance(*one, settings, uri) for one in answered):
                kept.growing = growing_most(answered, settings)
        return kept.growing

    def _made_from(self, uri: str, unit: LocatedUnit) -> object:
        """Return all that a hint depends on besides the text of its unit, the settings and the model."""
        analysed = unit.analysed
        budgets = [active.budget for active in self._rules.of(uri, analysed).budgets]
        return analysed.unit.qualname, self._head_diffs.of(uri, analysed), budgets

    def _kept(self, analysis: Analysis, settings: Settings) -> _DocumentHints:
        """The hints of a document, as far as they were made from the same analysis, settings and model."""
        uri = analysis.document.uri
        made_from = (settings, self._session.predictions.generation, self.hidden.all_shown)
        context = (self._head_diffs.state_of(uri), self._rules.state_of(uri))
        kept = self._documents.get(uri)
        if kept is None or _differ(kept.made_from, made_from):
            kept = self._documents[uri] = _DocumentHints(made_from, analysis, context)
        elif kept.analysis is not analysis or _differ(kept.context, context):
            previous = {**kept.previous, **kept.by_text}
            if len(previous) > _SPARE_TEXTS + 2 * len(analysis.units):
                previous = {code: previous[code] for code in analysis.codes() if code in previous}
            kept = self._documents[uri] = _DocumentHints(made_from, analysis, context, previous=previous)
        return kept

    @property
    def _resolves_tooltip(self) -> bool:
        return "tooltip" in (self._session.capability("text_document.inlay_hint.resolve_support.properties") or ())


def register(server: LanguageServer, session: Session, hints: InlayHints) -> None:
    """Answer requests for hints, and have the client repeat them when there are new results."""

    async def toggle(*arguments: Any) -> bool:
        is_hidden = hints.hidden.toggle(arguments[0] if arguments else None)
        session.on_results.fire()
        return is_hidden

    async def show_all(*arguments: Any) -> bool:
        hints.hidden.all_shown = not hints.hidden.all_shown
        session.on_results.fire()
        return hints.hidden.all_shown

    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(partial(InlayHints.hints, hints))
    server.feature(types.INLAY_HINT_RESOLVE)(partial(InlayHints.resolve, hints))
    server.command(TOGGLE)(toggle)
    server.command(SHOW_ALL)(show_all)
    session.on_close(hints.forget)
    session.on_results(hints.refresh)


def inlay_hint(
    unit: LocatedUnit,
    predictions: Sequence[Prediction],
    settings: Settings,
    changed: hint_label.Marks = _UNMARKED,
    uri: str = "",
    version: int | None = None,
    *,
    with_growth: bool = False,
) -> types.InlayHint | None:
    """The hint of one unit, on request with how its latency grows; None when there is nothing to show.

    With the document's ``version`` the tooltip is left for :meth:`InlayHints.resolve`.
    """
    work = unit.analysed.code.work
    width = settings.max_label - PADDING
    label = hint_label.label(predictions, settings.label, width, changed, work=work, with_growth=with_growth)
    if not label:
        return None
    if version is not None:
        data = {"uri": uri, "version": version, "unit": unit.analysed.unit.qualname}
        return types.InlayHint(position=unit.hint, label=label, padding_left=True, data=data)
    if any(render.wait_text(prediction, work) for prediction in predictions):
        tooltip = "what the unit waits for, and the median of its computing time; the hover names the lines"
        return types.InlayHint(position=unit.hint, label=label, tooltip=tooltip, padding_left=True)
    answered = [prediction for prediction in predictions if prediction.band is not None]
    metrics = ", ".join(dict.fromkeys(render.METRIC_WORDS[prediction.metric] for prediction in answered))
    what = "median" if settings.label == "median" else f"{answered[0].bands[0].coverage * 100:.0f} % band"
    tooltip = f"{metrics}: {what} of {render.BASIS_WORDS[answered[0].basis]}"
    if any(prediction.uncalibrated for prediction in answered):
        tooltip += "; ? marks an uncalibrated model"
    return types.InlayHint(position=unit.hint, label=label, tooltip=tooltip, padding_left=True)


def _differ(before: Sequence[object], after: Sequence[object]) -> bool:
    """Return whether any two objects are not the same one."""
    return any(old is not new for old, new in zip(before, after, strict=True))


def _inside(units: Sequence[LocatedUnit], requested: types.Range) -> list[LocatedUnit]:
    start, end = requested.start, requested.end
    first, last = (start.line, start.character), (end.line, end.character)
    return [unit for unit in units if first <= (unit.hint.line, unit.hint.character) <= last]
