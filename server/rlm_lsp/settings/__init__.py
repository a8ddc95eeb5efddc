"""Settings: one typed model with defaults, documentation and validation, from many sources.

``model`` names them all, ``kinds`` says what values they take, ``resolve`` joins the sources, ``files`` reads those on
disk, ``store`` keeps them for a session, ``generate`` writes what documents them.
"""

from __future__ import annotations

from .files import project_folder
from .model import ENTRIES, Budget, Settings
from .resolve import Problem, Source, resolve
from .store import SECTION, SettingsStore

__all__ = [
    "ENTRIES",
    "SECTION",
    "Budget",
    "Problem",
    "Settings",
    "SettingsStore",
    "Source",
    "project_folder",
    "resolve",
]
