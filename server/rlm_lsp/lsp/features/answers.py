"""The predictions of a document's units for a request: what is cached at once, the rest in the background.

When the rest is there the client is told to ask again. For a client that cannot be told, the request waits instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlm_core.types import Prediction

from rlm_lsp.lsp.documents import Analysis, Placed

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

Answers = list[tuple[Placed, tuple[Prediction, ...]]]


async def answers(ls: Server, analysis: Analysis, units: Sequence[Placed], *, refreshes: bool) -> Answers:
    """The units with known predictions; ``refreshes`` tells whether the client asks again when there are more."""
    if not refreshes:
        await ls.engine.wait_loaded()
    if not ls.engine.ready:
        return []
    uri = analysis.document.uri
    found = [ls.cached(uri, unit.analysed.code) for unit in units]
    missing = [unit.analysed.code for unit, known in zip(units, found, strict=True) if known is None]
    if missing:
        task = ls.scheduler.schedule(uri, analysis.document.version, missing)
        if not refreshes:
            # The job may serve other requests too: one that is cancelled must not end it, and its errors are not ours.
            await asyncio.wait({task})
            found = [ls.cached(uri, unit.analysed.code) for unit in units]
    return [(unit, known) for unit, known in zip(units, found, strict=True) if known is not None]
