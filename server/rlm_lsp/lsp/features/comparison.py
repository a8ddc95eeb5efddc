"""``rlm-lsp/changes``: how the units of an open document have changed since ``HEAD``, the largest change first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core.boundary import absorb
from rlm_core.queries.analysis import AnalysedUnit

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.hover import head_words
from rlm_lsp.rendering.labels import MOST_RATIO
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
    found.sort(key=lambda pair: (pair[1]["neutral"], pair[0], pair[1]["line"]))
    return {"compared": compared, "changes": [row for _, row in found]}


_Rank = tuple[bool, Sequence[float]]
_NEUTRAL: _Rank = (True, [0.0])


def _row(diff: HeadDiff, analysed: AnalysedUnit, settings: Settings) -> tuple[_Rank, dict[str, Any]]:
    """The rank of a unit among the changed ones, and its fields."""
    rank = change_rank(diff, settings)
    return rank, {
        "qualname": analysed.unit.qualname,
        "line": analysed.unit.name.start_line,
        "state": diff.state,
        "text": head_words(diff.state, diff.changes, change_clauses(diff, analysed, settings)),
        "neutral": diff.state == "changed" and rank == _NEUTRAL,
    }


def change_rank(diff: HeadDiff, settings: Settings) -> _Rank:
    """A key that sorts the largest change first: units that grow faster or wait longer, then by the largest ratio.

    Ratios count by the absolute value of their logarithm, as far as they are shown; if the largest are equal, the next
    one decides. One that is not sure enough for the settings counts only next to growth and waits.
    """
    grows = bool(rises(diff, settings)) or diff.work.wait is not None
    ratios = [change.ratio for change in diff.changes if change.ratio and (grows or is_sure(change, settings))]
    most = math.log(MOST_RATIO)
    return not grows, [*sorted(-min(abs(math.log(ratio)), most) for ratio in ratios), 0.0]
