"""The overview of the workspace and the status of a document over a real connection."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.notebooks import notebook_text

from .onnx_models import write_networks
from .recording import Recording, recording

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(90)]
PLAIN = types.ClientCapabilities()
SHOWING = types.ClientCapabilities(window=types.WindowClientCapabilities(work_done_progress=True))
SMALL = "def small(n):\n    return n\n"
LARGE = "def large(n):\n    return sorted(i * j for i in range(n) for j in range(n))\n"


async def ask(session: Recording, method: str, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = plain(await session.client.protocol.send_request_async(method, params))
    return answer


def plain(value: Any) -> Any:
    """What pygls makes a tuple with names of, as JSON has it."""
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "small.py").write_text(SMALL)
    (tmp_path / "src" / "large.py").write_text(f"\n\n{LARGE}")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "check.py").write_text("def check(n):\n    return [n] * n\n")
    return tmp_path


async def test_units_come_by_cost_and_page_by_page(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        first = await ask(session, "rlm-lsp/overview", limit=2)
        second = await ask(session, "rlm-lsp/overview", limit=2, cursor=first["cursor"])
        rows = [*first["rows"], *second["rows"]]
        assert (first["total"], first["files"], first["units"], first["complete"]) == (3, 3, 3, True)
        assert (len(first["rows"]), second["cursor"]) == (2, None)
        medians = [row["median"] for row in rows]
        assert medians == sorted(medians, reverse=True)
        assert {row["metric"] for row in rows} == {"latency"}
        [large] = [row for row in rows if row["qualname"] == "large"]
        place = (large["uri"], large["file"], large["line"], large["character"])
        assert place == ((folder / "src" / "large.py").as_uri(), "src/large.py", 2, 4)
        assert large["bandText"].endswith("s")


async def test_costs_that_cannot_be_compared_are_ranked_apart(folder: Path) -> None:
    solution = "class Solution:\n    def solve(self, n: int) -> int:\n        return sum(range(n))\n"
    (folder / "src" / "solution.py").write_text(f"# https://leetcode.com/problems/sum/\n{solution}")
    async with recording(PLAIN, folder) as session:
        page = await ask(session, "rlm-lsp/overview", limit=2)
        # A judge's run takes longer than any of these calls; the first page has the most expensive ones of both.
        assert [row["group"] for row in page["rows"]] == ["calls", "judge"]
        assert page["rows"][0]["qualname"] == "large"
        assert page["rows"][1]["median"] > page["rows"][0]["median"]
        rest = await ask(session, "rlm-lsp/overview", cursor=page["cursor"])
        assert {row["group"] for row in rest["rows"]} == {"calls"}


async def test_a_network_has_one_row_with_its_costs_on_other_devices(folder: Path) -> None:
    write_networks(folder / "src")
    async with recording(PLAIN, folder) as session:
        page = await ask(session, "rlm-lsp/overview")
        rows = [row for row in page["rows"] if row["group"] == "networks"]
        assert [row["file"] for row in rows] == ["src/large.onnx", "src/small.onnx"]
        [device] = {row["device"] for row in rows}
        assert rows[0]["median"] > rows[1]["median"]
        for row in rows:
            others = [other["device"] for other in row["others"]]
            assert len(others) == len(set(others)) > 4
            assert device not in others
            assert all(other["medianText"] and other["deviceName"] for other in row["others"])
        other = rows[0]["others"][0]
        chosen = await ask(session, "rlm-lsp/overview", device=other["device"])
        [row] = [row for row in chosen["rows"] if row["file"] == "src/large.onnx"]
        assert (row["median"], row["others"]) == (other["median"], [])
        assert chosen["total"] == 2


async def test_an_edit_outdates_the_list_and_an_update_reads_only_what_has_changed(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        await ask(session, "rlm-lsp/overview", watch=True)
        path = folder / "src" / "small.py"
        uri = session.open(path)
        await session.handled()
        assert session.sent("rlm-lsp/overviewChanged") == []  # the text that was read
        session.change(uri, LARGE.replace("large", "typed"))
        await session.wait("rlm-lsp/overviewChanged")
        page = await ask(session, "rlm-lsp/overview", update=True)
        assert {row["qualname"] for row in page["rows"]} == {"typed", "large", "check"}
        assert (page["unsaved"], page["files"], page["units"]) == (True, 3, 3)
        session.change(uri, SMALL)
        page = await ask(session, "rlm-lsp/overview", update=True)
        assert ({row["qualname"] for row in page["rows"]}, page["unsaved"]) == ({"small", "large", "check"}, False)


async def test_callers_in_other_files_are_updated_once_a_change_is_saved(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    callee, caller = package / "callee.py", package / "caller.py"
    callee.write_text("def work(n):\n    return n\n")
    caller.write_text("from package.callee import work\n\n\ndef call(n):\n    return work(n)\n")
    expensive = "def work(n):\n    return sorted(i * j for i in range(3_000) for j in range(1_000))\n"
    async with recording(PLAIN, tmp_path) as session:

        async def median_of_call(**params: Any) -> tuple[float, bool]:
            page = await ask(session, "rlm-lsp/overview", **params)
            return next(row["median"] for row in page["rows"] if row["qualname"] == "call"), page["unsaved"]

        before, _ = await median_of_call(watch=True)
        uri = session.open(callee)
        session.change(uri, expensive)
        median, unsaved = await median_of_call(update=True)
        assert (median == pytest.approx(before), unsaved) == (True, True)
        notified = len(session.sent("rlm-lsp/overviewChanged"))
        callee.write_text(expensive)
        event = types.FileEvent(callee.as_uri(), types.FileChangeType.Changed)
        session.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        await session.wait(
            "rlm-lsp/overviewChanged", lambda params: len(session.sent("rlm-lsp/overviewChanged")) > notified
        )
        after, unsaved = await median_of_call(update=True)
        assert after > 100 * before
        assert not unsaved
        median, unsaved = await median_of_call(refresh=True)
        assert (median == pytest.approx(after), unsaved) == (True, False)


async def test_new_and_removed_files_are_noticed(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        await ask(session, "rlm-lsp/overview", watch=True)
        (folder / "src" / "new.py").write_text(SMALL.replace("small", "new"))
        (folder / "src" / "small.py").unlink()
        page = await ask(session, "rlm-lsp/overview", update=True)
        assert {row["qualname"] for row in page["rows"]} == {"new", "large", "check"}


async def test_a_client_that_does_not_watch_is_not_notified(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        await ask(session, "rlm-lsp/overview")
        uri = session.open(folder / "src" / "small.py")
        session.change(uri, LARGE)
        await session.handled()
        assert session.sent("rlm-lsp/overviewChanged") == []


async def test_functions_of_notebooks_are_listed_with_their_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook_text("%matplotlib inline\n", f"x = 1\n\n\n{LARGE}"))
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    async with recording(PLAIN, tmp_path) as session:
        page = await ask(session, "rlm-lsp/overview", watch=True)
        [row] = page["rows"]
        place = (row["file"], row["uri"], row["cell"], row["cellUri"], row["line"], row["qualname"])
        assert place == ("a.ipynb", path.as_uri(), 3, None, 3, "large")
        assert [failure["file"] for failure in page["failures"]] == ["broken.ipynb"]
        assert "is not a Jupyter notebook" in page["failures"][0]["reason"]
        # An open notebook is listed as it is in the editor.
        cell = types.TextDocumentItem("vscode-notebook-cell:/a#1", "python", 1, SMALL)
        document = types.NotebookDocument(
            path.as_uri(), "jupyter-notebook", 1, [types.NotebookCell(types.NotebookCellKind.Code, cell.uri)]
        )
        session.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, [cell]))
        await session.wait("rlm-lsp/overviewChanged")
        page = await ask(session, "rlm-lsp/overview", update=True)
        [row] = page["rows"]
        place = (row["file"], row["uri"], row["cell"], row["cellUri"], row["line"], row["qualname"])
        assert place == ("a.ipynb", path.as_uri(), None, cell.uri, 0, "small")


async def test_rows_come_as_partial_results_while_files_are_read(folder: Path) -> None:
    for number in range(60):
        text = LARGE.replace("large", f"f{number}").replace("i * j", f"i * {number}")
        (folder / "src" / f"unit_{number}.py").write_text(text)
    async with recording(PLAIN, folder) as session:
        page = await ask(session, "rlm-lsp/overview", limit=1000, partialResultToken="mine", file="src/")
        parts = [plain(params.value) for params in session.sent(types.PROGRESS) if params.token == "mine"]
        assert len(parts) > 1
        assert 0 < parts[0]["done"] < parts[-1]["done"] <= parts[-1]["total"] == 63
        early = [(row["file"], row["qualname"], row["medianText"]) for part in parts for row in part["rows"]]
        assert len(set(early)) == len(early) >= 1
        assert set(early) <= {(row["file"], row["qualname"], row["medianText"]) for row in page["rows"]}
        assert not any(file.startswith("tests/") for file, _, _ in early)
        # What was read is not sent again.
        again = await ask(session, "rlm-lsp/overview", limit=1000, partialResultToken="other")
        assert again["total"] == 63
        assert not any(params.token == "other" for params in session.sent(types.PROGRESS))


async def test_files_of_tests_are_left_out_on_request(folder: Path) -> None:
    (folder / "src" / "test_small.py").write_text(SMALL.replace("small", "test_small"))
    async with recording(PLAIN, folder) as session:
        without = await ask(session, "rlm-lsp/overview", tests=False)
        assert ({row["qualname"] for row in without["rows"]}, without["files"]) == ({"small", "large"}, 2)
        whole = await ask(session, "rlm-lsp/overview")
        assert {row["qualname"] for row in whole["rows"]} == {"small", "large", "check", "test_small"}


async def test_rows_say_what_a_unit_waits_for(folder: Path) -> None:
    (folder / "src" / "wait.py").write_text("import time\n\n\ndef wait():\n    time.sleep(1)\n")
    async with recording(PLAIN, folder) as session:
        rows = {row["qualname"]: row for row in (await ask(session, "rlm-lsp/overview"))["rows"]}
        assert rows["wait"]["waitText"].startswith("≥1 s waits · ")
        [wait] = rows["wait"]["waits"]
        # 0-based, as the line of the unit.
        assert (wait["kind"], wait["line"], rows["wait"]["line"]) == ("time", 4, 3)
        assert wait["seconds"] == {"least": 1, "likely": 1, "most": 1}
        assert (rows["small"]["waitText"], rows["small"]["waits"], rows["small"]["endless"]) == ("", [], None)


async def test_a_list_stays_as_it_was_begun_and_old_ones_are_forgotten(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        first = await ask(session, "rlm-lsp/overview", limit=1)
        (folder / "src" / "more.py").write_text(LARGE.replace("large", "more"))
        assert (await ask(session, "rlm-lsp/overview", refresh=True))["total"] == 4
        assert (await ask(session, "rlm-lsp/overview", cursor=first["cursor"]))["total"] == 3
        for _ in range(4):
            await ask(session, "rlm-lsp/overview")
        with pytest.raises(JsonRpcException, match="has expired"):
            await ask(session, "rlm-lsp/overview", cursor=first["cursor"])


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"file": "SRC/"}, {"small", "large"}),
        ({"file": "**/check.py"}, {"check"}),
        ({"metric": "memory", "file": "small"}, {"small"}),
        ({"device": "x86_64"}, {"small", "large", "check"}),
        ({"device": "A100"}, set()),
        ({"metric": "accuracy"}, set()),
    ],
)
async def test_a_filter_leaves_what_it_names(folder: Path, wanted: dict[str, str], found: set[str]) -> None:
    async with recording(PLAIN, folder) as session:
        page = await ask(session, "rlm-lsp/overview", **wanted)
        assert {row["qualname"] for row in page["rows"]} == found
        assert {"latency", "memory"} <= set(page["metrics"])
        assert page["devices"] == ["x86-64"]


async def test_open_files_count_as_they_are_in_the_editor(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        uri = session.open(folder / "src" / "small.py", "# a comment\n" + SMALL.replace("small", "typed"))
        page = await ask(session, "rlm-lsp/overview", file="small.py")
        assert [(row["qualname"], row["uri"], row["line"]) for row in page["rows"]] == [("typed", uri, 1)]


async def test_ignored_excluded_and_unreadable_files_are_left_out(folder: Path) -> None:
    subprocess.run(["git", "-C", str(folder), "init", "--quiet"], check=True)
    (folder / ".gitignore").write_text("small.py\n")
    (folder / "src" / "binary.py").write_bytes(b"\0" * 20)
    (folder / "src" / "empty.py").touch()
    async with recording(PLAIN, folder, options={"exclude": ["tests/**"]}) as session:
        page = await ask(session, "rlm-lsp/overview")
        assert [row["qualname"] for row in page["rows"]] == ["large"]
        assert page["failed"] == 1
        assert page["failures"][0]["file"] == "src/binary.py"
        assert "binary" in page["failures"][0]["reason"]


async def test_links_out_of_the_workspace_are_left_out(folder: Path) -> None:
    outside = folder.parent / f"{folder.name}-outside.py"
    outside.write_text("def secret(n):\n    return n\n")
    (folder / "src" / "link.py").symlink_to(outside)
    async with recording(PLAIN, folder) as session:
        page = await ask(session, "rlm-lsp/overview")
        assert "secret" not in {row["qualname"] for row in page["rows"]}
        assert [failure["file"] for failure in page["failures"]] == ["src/link.py"]
        assert "outside" in page["failures"][0]["reason"]


async def test_reading_shows_progress_and_can_be_stopped(folder: Path) -> None:
    for number in range(200):
        (folder / f"unit_{number}.py").write_text(
            LARGE.replace("large", f"f{number}").replace("i * j", f"i * {number}")
        )
    async with recording(SHOWING, folder) as session:
        future = session.client.protocol.send_request("rlm-lsp/overview", {})
        begin = await session.wait(
            types.PROGRESS, lambda params: "reading the workspace" in params.value.get("title", "")
        )
        session.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(begin.token))
        page = plain(await asyncio.wrap_future(future))
        assert page["complete"] is False
        assert page["total"] < 203
        again = await ask(session, "rlm-lsp/overview", refresh=True)
        assert (again["complete"], again["total"]) == (True, 203)


async def test_bad_parameters_are_one_clear_line(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        for params, message in (
            ({"metric": "speed"}, "'speed' is not a metric"),
            ({"limit": 0}, "parameter `limit`: expected `int` >= 1"),
            ({"limit": True}, "parameter `limit`: expected `int | null`, got `bool`"),
            ({"cursor": "9:0"}, "ask again without one"),
            ({"file": 1}, "parameter `file`: expected `str | null`, got `int`"),
        ):
            with pytest.raises(JsonRpcException, match=message):
                await ask(session, "rlm-lsp/overview", **params)
        assert session.sent(types.WINDOW_SHOW_MESSAGE) == []


async def test_without_a_model_the_overview_says_so_and_the_status_has_none(folder: Path) -> None:
    async with recording(PLAIN, folder, options={"model": str(folder / "none")}) as session:
        with pytest.raises(JsonRpcException, match="there is no model"):
            await ask(session, "rlm-lsp/overview")
        status = await ask(session, "rlm-lsp/status", uri=session.open(folder / "src" / "small.py"))
        assert (status["model"], status["document"], status["unit"]) == (None, None, None)


async def test_the_status_describes_the_document_and_the_unit_around_a_line(folder: Path) -> None:
    async with recording(PLAIN, folder) as session:
        uri = session.open(folder / "src" / "large.py")
        unknown = await ask(session, "rlm-lsp/status", uri=uri, line=3)
        assert unknown["document"] == {"units": 1, "answered": 0, "abstained": 0, "reason": None}
        await session.command("rlm-lsp.predictFile", uri)
        status = await ask(session, "rlm-lsp/status", uri=uri, line=3)
        assert status["model"].startswith("rlm-")
        assert status["document"] == {"units": 1, "answered": 1, "abstained": 0, "reason": None}
        assert (status["unit"]["qualname"], status["unit"]["devices"]) == ("large", ["x86-64"])
        assert status["unit"]["label"]
        assert (await ask(session, "rlm-lsp/status", uri=uri, line=0))["unit"] is None


async def test_the_status_says_why_the_model_abstains(tmp_path: Path) -> None:
    async with recording(PLAIN, tmp_path) as session:
        text = "module {\n  tt.func public @copy(%arg0: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"
        uri = session.open(tmp_path / "kernel.ttir", text, "plaintext")
        await session.command("rlm-lsp.predictFile", uri)
        status = await ask(session, "rlm-lsp/status", uri=uri, line=1)
        assert (status["document"]["answered"], status["document"]["abstained"]) == (0, 1)
        assert status["document"]["reason"] == status["unit"]["reason"]
        assert "basis" not in status["unit"]["reason"]
