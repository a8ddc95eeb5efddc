"""``rlm-lsp/changes``: how the units of an open document have changed since ``HEAD``, the largest change first."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core.boundary import absorb
from rlm_core.queries.analysis import AnalysedUnit

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.hover import head_words
from rlm_lsp.settings.model import Settings

from .head_diff import HeadDiff, HeadDiffs, is_sure, rises
from .hover import change_clauses
from .requests import convert, require_model

CHANGES = "rlm-lsp/changes"


class ChangesParams(msgspec.Struct):
    """An open document."""

    uri: str


def register(server: LanguageServer, session: Session, head_diffs: HeadDiffs) -> None:
    """Answer ``rlm-lsp/changes``."""
    server.feature(CHANGES)(partial(changes, session, head_diffs))


async def changes(session: Session, head_diffs: HeadDiffs, params: Any) -> dict[str, Any]:
    """The changed and the new units of a document; ``compared`` is false where git or the settings give nothing.

    Each has its ``qualname``, 0-based ``line``, ``state`` (``changed`` or ``new``), the ``text`` of its hover, and
    ``neutral``: true if it is not sure enough for the settings that a cost has grown or fallen. The largest change
    comes first, neutral and new units last.
    """
    uri = convert(params, ChangesParams).uri
    await require_model(session)
    analysis = await session.analysis(uri)
    if analysis is None:
        raise JsonRpcInvalidParams(f"{uri}: not open, excluded, or in a language that gets no predictions")
    compared = await head_diffs.compare(analysis)
    settings = session.settings_for(uri)
    found = []
    for unit in analysis.units if compared else ():
        diff = head_diffs.of(uri, unit.analysed)
        if diff is not None and diff.state != "same":
            try:
                found.append(_row(diff, unit.analysed, settings))
            except Exception as error:
                absorb(f"what is shown of {unit.analysed.unit.qualname}", error)
                found.append(_row(HeadDiff(diff.state), unit.analysed, settings))
    found.sort(key=lambda pair: (pair[1]["neutral"], *(-part for part in pair[0]), pair[1]["line"]))
    return {"compared": compared, "changes": [row for _, row in found]}


_NEUTRAL = (False, 0.0)


def _row(diff: HeadDiff, analysed: AnalysedUnit, settings: Settings) -> tuple[tuple[bool, float], dict[str, Any]]:
    """How far the costs of a unit have moved, and the fields that say so."""
    size = _size(diff, settings)
    return size, {
        "qualname": analysed.unit.qualname,
        "line": analysed.unit.name.start_line,
        "state": diff.state,
        "text": head_words(diff.state, diff.changes, change_clauses(diff, analysed, settings)),
        "neutral": diff.state == "changed" and size == _NEUTRAL,
    }


def _size(diff: HeadDiff, settings: Settings) -> tuple[bool, float]:
    """How far the costs of a unit have moved: whether it grows faster or waits longer, and its largest ratio.

    The ratio is the absolute value of its logarithm. One that is not sure enough for the settings counts only next to
    growth and waits.
    """
    grows = bool(rises(diff, settings)) or diff.work.wait is not None
    ratios = [change.ratio for change in diff.changes if change.ratio and (grows or is_sure(change, settings))]
    return grows, max((abs(math.log(ratio)) for ratio in ratios), default=0.0)
