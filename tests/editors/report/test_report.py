"""The report of a small project in Chromium: every chart is drawn, nothing is loaded, and it follows light and dark."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_lsp.cli.app import app

from tests.editors import get_editors
from tests.editors.conftest import PICTURES, REPOSITORY
from tests.rlm_core.training.evaluation.report_rows import write_shop

pytestmark = pytest.mark.timeout(300)

EXTENSION = REPOSITORY / "vscode-extension"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser saw of the report, by colour scheme."""
    node = get_editors.folder() / "node24" / "bin" / "node"
    for needed in (node, EXTENSION / "node_modules" / "playwright-core"):
        assert needed.exists(), f"{needed} is not there: run tests/editors/run.sh vscode"
    folder = tmp_path_factory.mktemp("report")
    out = folder / "report.html"
    command = ["report", "--store", str(write_shop(folder).path), "--out", str(out), "--before", "builtin"]
    assert CliRunner().invoke(app, command).exit_code == 0
    script = Path(__file__).with_name("browse.mjs")
    arguments = [str(node), str(script), str(EXTENSION), str(out), str(PICTURES / "report")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_charts_are_drawn_without_a_request_or_a_message(seen: dict[str, Any], scheme: str) -> None:
    found = seen[scheme]
    assert set(found["drawn"]) == {"calibration", "coverage", "scatter-latency", "scatter-memory", "modules", "tuning"}
    assert all(count > 2 for count in found["drawn"].values()), found["drawn"]
    assert found["messages"][: found["before"]] == []
    [page, *more] = found["requests"]
    assert page.startswith("file:")
    assert [url for url in more if not url.startswith("data:")] == []
    # Not even a script in it could.
    assert found["fetched"] == "refused"
    assert "Content Security Policy" in " ".join(found["messages"][found["before"] :])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_sorts_and_the_treemap_changes(seen: dict[str, Any], scheme: str) -> None:
    found = seen[scheme]
    assert len(found["descending"]) > 1
    assert found["descending"] == sorted(found["descending"], reverse=True)
    assert found["ascending"] == sorted(found["ascending"])
    assert found["sorted"] == "ascending"
    assert found["pressed"] == ["functions: predicted peak memory"]


def test_colours_follow_the_scheme(seen: dict[str, Any]) -> None:
    assert seen["light"]["paper"] == "rgb(255, 255, 255)"
    assert seen["light"]["ink"] == "rgb(29, 35, 41)"
    assert seen["dark"]["paper"] == "rgb(21, 24, 28)"
    assert seen["dark"]["ink"] == "rgb(228, 232, 236)"
