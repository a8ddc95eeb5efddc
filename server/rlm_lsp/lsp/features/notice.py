"""The first-run notice: explains the range after a signature, once per user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_state_path
from rlm_core.types import Prediction

from rlm_lsp.lsp.session import Session

MARKER = "notice-1"
# The VS Code extension recognizes it by its first words, and adds a button that opens the documentation.
TEXT = (
    "rlm-lsp: The range after a signature is a prediction, not a measurement. About 80 % of calls should fall inside"
    " it, for inputs like those in a project's tests."
)


class FirstRunNotice:
    """Shows the notice with the first hint of a function, unless the settings turn it off or this is a CI job."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_done = False

    def give(self, predictions: Sequence[Prediction]) -> None:
        """Predictions are about to be shown."""
        if self._is_done or not any(answer.basis == "call" and answer.band is not None for answer in predictions):
            return
        self._is_done = True
        if self._session.settings.notice and not in_ci():
            self._session.spawn("notice", self._show())

    async def _show(self) -> None:
        if await asyncio.to_thread(is_first, user_state_path("rlm-lsp") / MARKER):
            self._session.show(TEXT)


def is_first(marker: Path) -> bool:
    """Whether this user has not seen the notice yet; marks it as seen. Of two servers, only one gets True.

    Where the marker cannot be written the notice counts as seen: better no notice than one with each start.
    """
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        with marker.open("x"):
            return True
    except OSError:
        return False


def in_ci() -> bool:
    """Whether this is a job of a CI service; all of them set ``CI``."""
    return os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")
