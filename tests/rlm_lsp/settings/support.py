"""A session's settings from sources on disk, without the settings of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlm_lsp.settings.files import SettingsStore


def store(
    options: Any = None, *folders: Path, user: Path = Path("/nowhere/config.toml"), **variables: str
) -> SettingsStore:
    return SettingsStore(options, folders, variables, user)


def lines(found: SettingsStore) -> list[str]:
    return [str(problem) for problem in found.unreported()]
