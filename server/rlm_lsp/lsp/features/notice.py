"""The first-run notices, each once per user: what the range after a signature is, or that there is none to show."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_state_path
from rlm_core.types import Prediction

from rlm_lsp.lsp.session import Session

MARKER, READY_MARKER = "notice-1", "notice-ready-1"
# The VS Code extension recognizes both by their first words, and adds buttons.
READY = "rlm-lsp is ready. Nothing expensive here: hover a function, or show all hints."
TEXT = (
    "rlm-lsp: The range after a signature is a prediction, not a measurement. About 80 % of calls should fall inside"
    " it, for inputs like those in a project's tests."
)


class FirstRunNotice:
    """Shows a notice with the first hint of a function, or where the functions on the screen have none.

    Not if the settings turn it off or this is a CI job.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_done = self._is_ready = False

    def give(self, predictions: Sequence[Prediction]) -> None:
        """Predictions are about to be shown."""
        if self._is_done or not any(answer.basis == "call" and answer.band is not None for answer in predictions):
            return
        self._is_done = True
        if self._session.settings.notice and not in_ci():
            self._session.spawn("notice", self._show())

    def give_none(self) -> None:
        """Functions are predicted, and none matters enough for a hint."""
        if self._is_done or self._is_ready:
            return
        self._is_ready = True
        if self._session.settings.notice and not in_ci():
            self._session.spawn("notice", self._show_ready())

    async def _show(self) -> None:
        if await asyncio.to_thread(is_first, user_state_path("rlm-lsp") / MARKER):
            self._session.show(TEXT)

    async def _show_ready(self) -> None:
        folder = user_state_path("rlm-lsp")
        # Whoever has seen a hint knows that it is ready.
        has_seen = await asyncio.to_thread((folder / MARKER).exists)
        if not has_seen and await asyncio.to_thread(is_first, folder / READY_MARKER):
            self._session.show(READY)


def is_first(marker: Path) -> bool:
    """Return whether this user has not seen the notice yet; marks it as seen. Of two servers, only one gets True.

    Where the marker cannot be written the notice counts as seen: better no notice than one with each start.
    """
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        with marker.open("x"):
            return True
    except OSError:
        return False


def in_ci() -> bool:
    """Return whether this is a job of a CI service; all of them set ``CI``."""
    return os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")
