"""One failure costs one unit, or one file that cannot be read, in every front end; the log has no code of the user.

The faults are those of ``faults/sitecustomize.py``, in child processes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from mcp import Client, StdioServerParameters

from tests.warm_server import warm_command

from .conftest import Start

pytestmark = pytest.mark.timeout(120)
_FAULTS = Path(__file__).parent / "faults"
_BODY = "    hidden_word = sorted(values)\n    return hidden_word\n"
_NO_NUMBER = "the analysis of this text failed (MemoryError)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lenient: None) -> Path:
    """Two files with functions of which two fail, and one that cannot be read; all have budgets."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(_FAULTS), os.environ.get("PYTHONPATH", "")]))

    def functions(*names: str) -> str:
        return "\n\n".join(f"# rlm: latency < 1 ns\ndef {name}(values):\n{_BODY}" for name in names)

    (tmp_path / "first.py").write_text(functions("before", "no_facts", "no_answer", "after"))
    (tmp_path / "other.py").write_text(functions("other"))
    (tmp_path / "unreadable.py").write_text(functions("lost"))
    return tmp_path


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [*warm_command(), *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def _check_log(log: str) -> None:
    """The failures are logged once each, with their tracebacks, and without code."""
    assert (
        len(re.findall(r"the analysis of no_facts in .* failed: RecursionError in rlm_core/queries/unit_facts.py", log))
        == 1
    )
    # The file's text is analysed, and a text that comes without facts.
    assert len(re.findall(r"in _recurse \(\d+ times\)\n", log)) == 2
    assert len(re.findall(r"the prediction of a text failed: MemoryError", log)) == 1
    assert len(re.findall(r"the analysis of \S*unreadable.py failed: KeyError", log)) == 1
    assert re.search(r"  rlm_core/queries/analysis.py:\d+ in ", log)
    assert "hidden_word" not in log
    assert "Traceback" not in log


def test_predict_has_rows_for_all_units_and_a_line_for_a_file_that_fails(folder: Path) -> None:
    done = _run(folder, "predict", ".", "--format", "json")
    rows: dict[str, dict[str, Any]] = {
        row["qualname"]: row for row in json.loads(done.stdout) if row["metric"] == "latency"
    }
    assert list(rows) == ["before", "no_facts", "no_answer", "after", "other"]
    assert {name for name, row in rows.items() if row["median"] is None} == {"no_answer"}
    assert rows["no_answer"]["abstained"] == _NO_NUMBER
    assert {name: row["analysis_failed"] for name, row in rows.items() if row["analysis_failed"]} == {
        "no_facts": "RecursionError"
    }
    assert done.returncode == 2  # as for every file that cannot be read
    assert "error: unreadable.py: the analysis failed (KeyError); see the log" in done.stderr
    _check_log(done.stderr)
    table = _run(folder, "predict", "first.py")
    assert table.returncode == 0
    assert len(table.stdout.splitlines()) == 5
    assert "from the text alone: its analysis failed (RecursionError)" in table.stdout


@pytest.mark.parametrize("command", ["predict", "check"])
def test_strict_stops_with_the_error(folder: Path, command: str) -> None:
    done = _run(folder, command, "first.py", "--strict")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("RecursionError")


def test_check_reports_the_other_units_and_notes_what_has_no_number(folder: Path) -> None:
    done = _run(folder, "check", ".", "--format", "json", "--no-measured")
    over = [entry["qualname"] for entry in json.loads(done.stdout) if entry["code"] == "over-budget"]
    assert over == ["before", "no_facts", "after", "other"]
    assert done.returncode == 1
    assert f"1 prediction missing: {_NO_NUMBER}" in done.stderr
    assert "not checked: unreadable.py: the analysis failed (KeyError); see the log" in done.stderr
    _check_log(done.stderr)


@pytest.mark.asyncio
async def test_the_server_shows_all_other_units(start: Start, folder: Path) -> None:
    session = await start(folder=folder, options={})
    first = session.open(folder / "first.py")
    labels = await session.labels(first, 3)
    assert sorted(labels) == [1, 7, 19]
    assert "MemoryError" in str(await session.hover(first, 13, 5))
    assert "from the text alone: its analysis failed (RecursionError)" in str(await session.hover(first, 7, 5))
    assert "80 %" in str(await session.hover(first, 19, 5))
    other = session.open(folder / "other.py")
    assert list(await session.labels(other, 1)) == [1]
    await session.hover(session.open(folder / "unreadable.py"), 1, 5)
    parameters = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(first))
    report = await session.client.text_document_diagnostic_async(parameters)
    assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
    assert [item.range.start.line for item in report.items if item.code == "over-budget"] == [1, 7, 19]
    text = (folder / "first.py").read_text()
    for edit in range(10):
        session.change(first, text + f"# {edit}\n")
        await session.hover(first, 7, 5)
    protocol = session.client.protocol
    overview = await protocol.send_request_async("rlm-lsp/overview", {"tests": True})  # type: ignore[no-untyped-call]
    assert sorted({row.qualname for row in overview.rows}) == ["after", "before", "no_facts", "other"]
    assert [(entry.file, "KeyError" in entry.reason) for entry in overview.failures] == [("unreadable.py", True)]
    log = await session.client.workspace_execute_command_async(types.ExecuteCommandParams("rlm-lsp.showLog"))
    _check_log(str(log))
    sent = [message.message for message in session.client.log_messages if message.type == types.MessageType.Error]
    assert len([line for line in sent if "no_facts" in line]) == 1
    assert session.client.messages == []
    assert "hidden_word" not in "".join(sent)


@pytest.mark.asyncio
async def test_agents_get_the_reason(folder: Path) -> None:
    program, arguments = warm_command()[0], [*warm_command()[1:], "mcp", "--no-measured"]
    server = StdioServerParameters(command=program, args=arguments, cwd=folder, env={**os.environ})
    async with Client(server) as client:
        predicted = (await client.call_tool("predict", {"path": "."})).structured_content
        check = await client.call_tool("check", {"path": "."})
        explained = await client.call_tool("explain", {"path": "first.py", "unit": "no_answer"})
    assert predicted is not None
    rows = {row["qualname"]: row for row in predicted["rows"] if row["metric"] == "latency"}
    assert {name: row["abstained"] for name, row in rows.items()} == {
        **dict.fromkeys(("before", "no_facts", "after", "other")),
        "no_answer": _NO_NUMBER,
    }
    assert rows["no_facts"]["analysis_failed"] == "RecursionError"
    assert predicted["failed"] == ["unreadable.py: the analysis failed (KeyError); see the log"]
    assert check.structured_content is not None
    assert {row["qualname"] for row in check.structured_content["findings"]} == {"before", "no_facts", "after", "other"}
    [said] = check.content
    assert said.type == "text"
    assert said.text.splitlines()[-2:] == [f"1 prediction missing: {_NO_NUMBER}", "1 file missing: see the log"]
    assert explained.structured_content is not None
    assert explained.structured_content["abstained"] == _NO_NUMBER
