"""The offer to score this machine's CPU: once per machine, when it is idle and a hint shows a cost that the text fixes.

Until then such costs are those of the reference machine, with wider bands. The score takes two seconds.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from platformdirs import user_state_path
from rlm_core.errors import RlmError
from rlm_core.types import Prediction

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.labels import ratio_digits

from .notice import MARKER, in_ci, is_first

ASKED, NEVER_MARKER = "cpu-offer-{cpu}", "cpu-offer-never"
SCORE, NOT_NOW, NEVER = "Score now", "Not now", "Never"
TEXT = "rlm-lsp: Score this machine's CPU, in about 2 seconds, so that predicted times are those of this machine?"
_SHOW_MESSAGE = "window.show_message"
_CHECK_SECONDS = 20.0  # between looks at a machine that is busy


class CpuOffer:
    """Asks whether to score the CPU, and scores it.

    Not if the settings turn notices off, this is a CI job, the client cannot ask, or the user is new: the first hint
    comes with a notice already.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._started = time.time()
        self._is_done = False
        self._checked = -_CHECK_SECONDS

    def give(self, predictions: Sequence[Prediction]) -> None:
        """Predictions are about to be shown."""
        now = time.monotonic()
        if self._is_done or now < self._checked + _CHECK_SECONDS or not any(map(_depends_on_cpu, predictions)):
            return
        self._checked = now
        session = self._session
        if session.settings.notice and not in_ci() and session.capability(_SHOW_MESSAGE) is not None:
            session.spawn("offer to score the CPU", self._offer())

    async def _offer(self) -> None:
        if not await asyncio.to_thread(may_offer, user_state_path("rlm-lsp"), self._started):
            return
        self._is_done = True
        actions = [types.MessageActionItem(title) for title in (SCORE, NOT_NOW, NEVER)]
        asked = types.ShowMessageRequestParams(types.MessageType.Info, TEXT, actions)
        answer = await self._session.client.window_show_message_request_async(asked)
        if answer is not None and answer.title == NEVER:
            await asyncio.to_thread(is_first, user_state_path("rlm-lsp") / NEVER_MARKER)
        if answer is not None and answer.title == SCORE:
            await self._score()

    async def _score(self) -> None:
        session = self._session
        try:
            overall = await asyncio.to_thread(_measured)
        except RlmError as error:
            session.show(f"rlm-lsp: {error}", types.MessageType.Warning)
            return
        if await session.load_model(session.settings) is None:
            session.clear()
            session.show(f"rlm-lsp: Predicted times of functions are now multiplied by {ratio_digits(1 / overall)}.")


def _depends_on_cpu(prediction: Prediction) -> bool:
    """Return whether a prediction is a time of a CPU without a score that the text fixes."""
    from rlm_core.inference.work_mixture import is_fixed

    band = prediction.band
    is_time = (prediction.basis, prediction.metric) == ("call", "latency")
    return is_time and band is not None and is_fixed(prediction) and band.source.cpu_scale is None


def may_offer(folder: Path, started: float) -> bool:
    """Return whether to ask now; if so, marks in the state ``folder`` that this machine was asked.

    ``started`` is when the session began, in seconds since the epoch: who saw the first notice since then is new.
    """
    from rlm_core.inference.adaptation import cpu_score

    try:
        if (folder / MARKER).stat().st_mtime >= started:
            return False
    except OSError:
        return False
    if (folder / NEVER_MARKER).exists() or not cpu_score.enabled() or cpu_score.stored() is not None:
        return False
    machine = f"{zlib.crc32(cpu_score.cpu_name().encode()):08x}"
    return cpu_score.load_problem() is None and is_first(folder / ASKED.format(cpu=machine))


def _measured() -> float:
    """Score the CPU, keep the score, and return how many times as fast as the reference it is.

    Raises:
        DataError: the machine is busy, or the score cannot be kept.
    """
    from rlm_core.inference.adaptation import cpu_score

    score = cpu_score.measure()
    cpu_score.write(score, cpu_score.default_path())
    return score.overall
