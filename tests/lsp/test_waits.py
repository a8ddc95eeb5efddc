"""Waits and loops that may not end over a real connection: labels, hovers with lines, marks and findings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.rlm_lsp.findings.support import commit

from .clients import CLIENTS
from .recording import recording

pytestmark = [pytest.mark.timeout(90), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
SOURCE = """import subprocess
import time

import requests


def sleep():
    time.sleep(1)


def download(url):
    return requests.get(url).json()


def run():
    return subprocess.run(["ls"], capture_output=True)


def greet():
    print("hello", input("name? "))


def forever():
    while True:
        pass


def glue(a, b):
    return a + b
"""
LABELS = {
    "sleep": r"≥1 s waits · [\d.]+ [nµm]s",
    "download": r"waits: network · [\d.]+ [nµm]s",
    "run": r"waits: process · [\d.]+ [nµm]s",
    "greet": r"waits: user · [\d.]+ [nµm]s",
    "forever": r"may not end( · .+)?",
    "glue": r"(?!.*(wait|end)).+",
}
LINES = {name: SOURCE[: SOURCE.index(f"def {name}(")].count("\n") for name in LABELS}
GLUE = "import requests\n\n\ndef load(url):\n    return url.strip()\n"
DOWNLOAD = "import requests\n\n\ndef load(url):\n    return requests.get(url)\n"


@pytest.mark.parametrize("editor", CLIENTS)
async def test_each_editor_shows_what_a_function_waits_for(start: Start, tmp_path: Path, editor: str) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    session = await start(editor=editor)
    uri = session.open(tmp_path / "a.py")
    await session.labels(uri, len(LABELS))
    labels = {hint.position.line: str(hint.label) for hint in await session.hints(uri)}
    for name, pattern in LABELS.items():
        assert re.fullmatch(pattern, labels[LINES[name]]), name
        assert len(labels[LINES[name]]) <= 25


async def test_the_hover_names_the_line_of_the_file(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    session = await start()
    uri = session.open(tmp_path / "a.py")
    clauses = {
        "sleep": "- line 8 sleeps 1 s\n",
        "download": "- line 12 waits for the network (`requests.get`)\n",
        "run": "- line 16 waits for a process (`subprocess.run`)\n",
        "greet": "- line 20 waits for the user (`input`)\n",
        "forever": "- line 24 may not end\n",
    }
    for name, clause in clauses.items():
        text = await session.hover(uri, LINES[name])
        # In the summary, after the table and what its range means.
        assert f"\n{clause.rstrip()}" in text.partition("**Details**")[0], text
    assert "does not include the wait for the network (line 12)" in await session.hover(uri, LINES["download"])
    assert "does not include" not in await session.hover(uri, LINES["sleep"])
    assert not re.search("wait|may not end", await session.hover(uri, LINES["glue"]))


async def test_an_edit_of_a_constant_elsewhere_changes_the_hint(start: Start, tmp_path: Path) -> None:
    text = "import time\n\nDELAY = 1\n\n\ndef poll():\n    time.sleep(DELAY)\n"
    (tmp_path / "a.py").write_text(text)
    session = await start()
    uri = session.open(tmp_path / "a.py")
    [label] = (await session.labels(uri, 1)).values()
    assert label.startswith("≥1 s waits")
    session.change(uri, text.replace("DELAY = 1", "DELAY = 30"))
    while not (await session.labels(uri, 1))[5].startswith("≥30 s waits"):
        await session.refreshes.get()


async def test_a_new_wait_is_marked_and_named(start: Start, tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": GLUE})
    session = await start()
    uri = session.open(tmp_path / "a.py", DOWNLOAD)
    while "▲ new" not in (label := (await session.labels(uri, 1))[3]):
        await session.refreshes.get()
    assert label == "waits: network ▲ new"
    assert "now waits for the network (line 5)" in await session.hover(uri, 3)


async def test_a_budget_that_does_not_cover_a_wait_is_a_finding(tmp_path: Path) -> None:
    commit(tmp_path, {"a.py": GLUE})
    async with recording(types.ClientCapabilities(), tmp_path, options={"changeDiagnostics": True}) as session:
        budget = DOWNLOAD.replace("def ", "# rlm: latency < 1 s\ndef ")
        uri = session.open(tmp_path / "a.py", budget)
        findings = await session.published(uri, 1)
        assert {(finding.code, finding.severity) for finding in findings} >= {
            ("wait", types.DiagnosticSeverity.Information)
        }
        assert {finding.message for finding in findings if finding.code == "wait"} == {
            "the budget of load, 1 s, covers computing only: it does not include the wait for the network (line 6)",
        }


async def test_the_settings_say_how_long_a_wait_takes(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.waits]\ndatabase = "20 ms"\n')
    (tmp_path / "a.py").write_text("def load(session, user):\n    for _ in range(3):\n        session.refresh(user)\n")
    session = await start(folder=tmp_path)
    uri = session.open(tmp_path / "a.py")
    [label] = (await session.labels(uri, 1)).values()
    assert label.startswith("60 ms waits")
    text = await session.hover(uri, 0)
    assert "- line 3 waits for a database 3 × 20 ms (`session.refresh`)" in text
    assert "does not include" not in text
