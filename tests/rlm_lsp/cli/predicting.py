"""``rlm-lsp predict`` in this process, with the model that ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from rlm_lsp.cli.app import app

GOOD = "def good(n):\n    return sum(range(n))\n"


def predict(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def rows_of(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows
