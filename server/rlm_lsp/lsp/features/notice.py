"""The first-run notice: what the number behind a signature stands for, told once a user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from platformdirs import user_state_path
from rlm_core.types import Prediction

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

FILE = "notice-1"
# VS Code's extension knows it by its beginning, and adds a button that opens more.
TEXT = (
    "rlm-lsp: the range behind a signature is predicted, not measured; four calls in five should fall into it, with"
    " inputs like those of a project's own tests."
)


class Notice:
    """Shows the notice with the first hint of a function, to people only: not in CI, not where settings say no."""

    def __init__(self) -> None:
        self._given = False

    def give(self, ls: Server, predictions: Sequence[Prediction]) -> None:
        """Predictions are about to be shown for the first or another time."""
        if self._given or not any(one.basis == "call" and one.band is not None for one in predictions):
            return
        self._given = True
        if ls.settings.notice and not in_ci():
            ls.spawn("notice", _show(ls))


async def _show(ls: Server) -> None:
    if await asyncio.to_thread(is_first, user_state_path("rlm-lsp") / FILE):
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, TEXT))


def is_first(marker: Path) -> bool:
    """Whether this user has not seen the notice yet; marks that it was seen. Two servers never both get True.

    Where the marker cannot be kept it counts as seen: better no notice than one with each start.
    """
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        with marker.open("x"):
            return True
    except OSError:
        return False


def in_ci() -> bool:
    """Whether nobody is there to read: ``CI`` is set, as all the services do."""
    return os.environ.get("CI", "").strip().lower() not in ("", "0", "false", "no", "off")
