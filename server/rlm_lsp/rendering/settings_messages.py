"""Invalid settings -> the one sentence that an editor pops up about them; the log has them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlm_lsp.settings.resolve import SettingsProblem
from rlm_lsp.settings.store import OF_CLIENT

from .escaping import message

_PLACES = {OF_CLIENT: "the editor's settings", "environment": "the environment"}


def invalid_settings(problems: Sequence[SettingsProblem]) -> str:
    """Describe invalid settings and the consequence: the first of the ``problems``, and how many there are."""
    first = problems[0]
    place = _PLACES.get(first.place, Path(first.place).name)
    text = message(first.text.replace("`", '"'))
    text += "" if text.endswith(("?", ".")) else "."
    if len(problems) == 1:
        return f"rlm-lsp ignores a setting that is not valid, in {place}: {text}"
    return f"rlm-lsp ignores {len(problems)} settings that are not valid. The first, in {place}: {text}"
