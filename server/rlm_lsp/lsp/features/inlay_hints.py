"""Inlay hints: what a unit costs, after its signature, and how that has changed against git's ``HEAD``.

What the cache holds is answered at once; the rest is predicted in the background and a refresh follows. The tooltip is
the text of the hover, made when a client asks for it; a client that cannot ask later gets a short one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lsprotocol import types
from rlm_core.types import CodeText, Metric, Prediction

from rlm_lsp.lsp.documents import Analysis, Placed
from rlm_lsp.rendering import values as render
from rlm_lsp.settings.model import Settings

from .answers import answers
from .head_diff import HeadDiff, marks
from .hover import content_of

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

MOST_TEXTS = 2_000
_UNMARKED: Mapping[Metric, str] = {}


class HiddenHints:
    """The files and languages whose hints the user has switched off until the server ends."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._languages: set[str] = set()

    def toggle_file(self, uri: str) -> bool:
        """Hide a file's hints, or show them again; whether they are hidden now."""
        self._files ^= {uri}
        return uri in self._files

    def toggle_language(self, name: str) -> bool:
        """Hide the hints of all files in a language, or show them again; whether they are hidden now."""
        self._languages ^= {name}
        return name in self._languages

    def hides(self, uri: str, language: str | None) -> bool:
        """Whether a document in a language has no hints."""
        return uri in self._files or language in self._languages


@dataclass(slots=True)
class _Kept:
    """The hints of one document: by the ``id`` of their units, and what was made for the texts of units."""

    made_from: tuple[object, ...]
    analysis: Analysis
    changes: object
    hints: dict[int, types.InlayHint | None] = field(default_factory=dict)
    texts: dict[CodeText, tuple[str, HeadDiff | None, types.InlayHint | None]] = field(default_factory=dict)
    before: dict[CodeText, tuple[str, HeadDiff | None, types.InlayHint | None]] = field(default_factory=dict)


class Hints:
    """The hints that were made for the newest analysis of each document.

    A client asks for the same ones again with each edit and scroll, and making one costs far more than keeping it. An
    edit moves most units and changes few: the hints of the others are moved along.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def of(self, analysis: Analysis, changes: object, made_from: tuple[object, ...]) -> _Kept:
        """The hints of a document as far as they were made from the same objects."""
        uri = analysis.document.uri
        kept = self._kept.get(uri)
        if kept is None or any(one is not other for one, other in zip(kept.made_from, made_from, strict=True)):
            kept = self._kept[uri] = _Kept(made_from, analysis, changes)
        elif kept.analysis is not analysis or kept.changes is not changes:
            kept = self._kept[uri] = _Kept(made_from, analysis, changes, before={**kept.before, **kept.texts})
            if len(kept.before) > MOST_TEXTS + 2 * len(analysis.units):
                kept.before = {}
        return kept

    def forget(self, uri: str) -> None:
        """The document is no longer open."""
        self._kept.pop(uri, None)


async def inlay_hints(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints of the units in the requested range, as far as they are known."""
    uri = params.text_document.uri
    analysis = await ls.analysis(uri)
    settings = ls.settings_for(uri)
    if analysis is None or not settings.hints or ls.hints_hidden.hides(uri, analysis.document.language):
        return []
    version = analysis.document.version if resolves_tooltip(ls) else None
    kept = ls.hints.of(analysis, ls.changes.found(uri), (settings, ls.engine.state))
    wanted = _inside(analysis.units, params.range)
    for unit in wanted:
        if id(unit) not in kept.hints:
            _move(kept, unit, ls.changes.of(uri, unit.analysed), version)
    missing = [unit for unit in wanted if id(unit) not in kept.hints]
    hints = dict(kept.hints)
    told: list[Prediction] = []
    for unit, predictions in await answers(ls, analysis, missing, refreshes=ls.client_refreshes):
        since = ls.changes.of(uri, unit.analysed)
        hint = inlay_hint(unit, predictions, settings, marks(since, predictions, settings), uri, version)
        hints[id(unit)] = hint
        told += predictions if hint is not None else ()
        # What a server could not tell is asked again: it is no fact about the text.
        if not any(prediction.transient for prediction in predictions):
            kept.hints[id(unit)] = hint
            kept.texts[unit.analysed.code] = unit.analysed.unit.qualname, since, hint
    ls.changes.look(analysis)
    ls.notice.give(ls, told)
    return [hint for unit in wanted if (hint := hints.get(id(unit))) is not None]


def _move(kept: _Kept, unit: Placed, since: HeadDiff | None, version: int | None) -> None:
    """Take over the hint of a unit that was there before the last edit, at its new place."""
    code, qualname = unit.analysed.code, unit.analysed.unit.qualname
    known = kept.before.get(code)
    if known is None or known[0] != qualname or known[1] != since:
        return
    hint = known[2]
    if hint is not None:
        data = {**hint.data, "version": version} if isinstance(hint.data, dict) else None
        hint = types.InlayHint(unit.hint, hint.label, tooltip=hint.tooltip, padding_left=True, data=data)
    kept.hints[id(unit)] = hint
    kept.texts[code] = qualname, since, hint


async def resolve_inlay_hint(ls: Server, hint: types.InlayHint) -> types.InlayHint:
    """The hint with its tooltip: the text of the hover. A hint of an older version stays as it is."""
    data = hint.data
    if not isinstance(data, Mapping):
        return hint
    uri = str(data.get("uri"))
    analysis = await ls.analysis(uri)
    if analysis is None or analysis.document.version != data.get("version"):
        return hint
    units = (unit for unit in analysis.units if unit.analysed.unit.qualname == data.get("unit"))
    unit = next((unit for unit in units if unit.hint == hint.position), None)
    predictions = ls.cached(uri, unit.analysed.code) if unit is not None else None
    if unit is not None and predictions:
        hint.tooltip = await content_of(ls, analysis, unit, predictions)
    return hint


def inlay_hint(
    unit: Placed,
    predictions: Sequence[Prediction],
    settings: Settings,
    changed: Mapping[Metric, str] = _UNMARKED,
    uri: str = "",
    version: int | None = None,
) -> types.InlayHint | None:
    """The hint of one unit; None when there is nothing to show.

    With the document's ``version`` the tooltip is left for :func:`resolve_inlay_hint`.
    """
    shown = [prediction for prediction in predictions if not is_hidden(prediction, settings)]
    label = render.label(shown, settings.label, settings.max_label, changed)
    if not label:
        return None
    if version is not None:
        data = {"uri": uri, "version": version, "unit": unit.analysed.unit.qualname}
        return types.InlayHint(position=unit.hint, label=label, padding_left=True, data=data)
    answered = [prediction for prediction in shown if prediction.band is not None]
    metrics = ", ".join(dict.fromkeys(render.METRIC_WORDS[prediction.metric] for prediction in answered))
    what = "median" if settings.label == "median" else f"{answered[0].bands[0].coverage * 100:.0f} % band"
    tooltip = f"{metrics}: {what} of {render.BASIS_WORDS[answered[0].basis]}"
    return types.InlayHint(position=unit.hint, label=label, tooltip=tooltip, padding_left=True)


def is_hidden(prediction: Prediction, settings: Settings) -> bool:
    """Whether a cost is too small to be shown beside the code."""
    least = settings.hide_below.get(prediction.metric)
    return least is not None and prediction.median is not None and prediction.median < least


def resolves_tooltip(ls: Server) -> bool:
    """Whether the client asks for a hint's tooltip when it shows it."""
    text_document = ls.client_capabilities.text_document
    hints = text_document.inlay_hint if text_document else None
    return bool(hints and hints.resolve_support and "tooltip" in hints.resolve_support.properties)


def _inside(units: Sequence[Placed], wanted: types.Range) -> list[Placed]:
    first, last = (wanted.start.line, wanted.start.character), (wanted.end.line, wanted.end.character)
    return [unit for unit in units if first <= (unit.hint.line, unit.hint.character) <= last]
