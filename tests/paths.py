"""Folders of the repository that tests read."""

from __future__ import annotations

from pathlib import Path

import rlm_core

REPOSITORY = Path(__file__).parents[1]
EXAMPLES = REPOSITORY / "examples"
BUILTIN = Path(rlm_core.__file__).parent / "builtin"
