"""Inlay hints: the default bands after each signature.

What the cache holds is answered at once; the rest is predicted in the background and a refresh follows. A client that
knows no refresh waits for the numbers instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types
from rlm_core.types import Prediction

from .. import render
from ..documents import Placed

if TYPE_CHECKING:
    from ..server import Server


async def inlay_hints(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The hints of the units in the requested range, as far as they are known."""
    uri = params.text_document.uri
    analysis = await ls.analysis(uri)
    if analysis is None:
        return []
    if not ls.client_refreshes:
        await ls.engine.wait_loaded()
    if not ls.engine.ready:
        return []
    wanted = [unit for unit in analysis.units if _is_inside(unit.hint, params.range)]
    missing = [unit.analysed.code for unit in wanted if ls.engine.cached(unit.analysed.code) is None]
    if missing:
        task = ls.scheduler.schedule(uri, analysis.document.version, missing)
        if not ls.client_refreshes:
            # The job may serve other requests too: one that is cancelled must not end it, and its errors are not ours.
            await asyncio.wait({task})
    found = ((unit, ls.engine.cached(unit.analysed.code)) for unit in wanted)
    hints = (inlay_hint(unit, predictions) for unit, predictions in found if predictions is not None)
    return [hint for hint in hints if hint is not None]


def inlay_hint(unit: Placed, predictions: Sequence[Prediction]) -> types.InlayHint | None:
    """The hint of one unit; None when the model abstains on every metric."""
    label = render.label(predictions)
    if not label:
        return None
    answered = [prediction for prediction in predictions if prediction.band is not None]
    metrics = ", ".join(render.METRIC_WORDS[prediction.metric] for prediction in answered)
    coverage = answered[0].bands[0].coverage
    tooltip = f"{metrics}: {coverage * 100:.0f} % band of {render.BASIS_WORDS[answered[0].basis]}"
    return types.InlayHint(position=unit.hint, label=label, tooltip=tooltip, padding_left=True)


def _is_inside(position: types.Position, wanted: types.Range) -> bool:
    return wanted.start <= position <= wanted.end
