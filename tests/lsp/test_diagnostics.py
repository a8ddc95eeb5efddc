"""Diagnostics over a real connection: pulled and pushed, of comments, configuration and HEAD, and never stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types

from .recording import Recording, commit, recording

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

SIMPLE = "def work(n):\n    return n\n"
SLOW = "def work(n):\n    return [sorted(range(n), key=lambda x: -x) for _ in range(n * n)]\n"
# The texts fix the cost of these, so that it is known by how much it grows.
FIXED = "def work():\n    return sorted(range(10))\n"
FIXED_SLOW = "def work():\n    return [sorted(range(100), key=lambda x: -x) for _ in range(1000)]\n"
OVER = f"# rlm: memory < 1 B\n{SLOW}"


def client(*, pull: bool = True, refresh: bool = False) -> types.ClientCapabilities:
    pulled = types.DiagnosticClientCapabilities(related_information=True) if pull else None
    pushed = types.PublishDiagnosticsClientCapabilities(related_information=True)
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=refresh)
        ),
        text_document=types.TextDocumentClientCapabilities(diagnostic=pulled, publish_diagnostics=pushed),
    )


async def codes(session: Recording, uri: str) -> list[str]:
    """The codes of a document's diagnostics, whose messages are plain text."""
    items = (await session.pull(uri)).items
    assert not [item.message for item in items if "`" in item.message]
    return [str(item.code) for item in items]


async def test_a_unit_over_its_budget_is_underlined_next_to_its_budget(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        [found] = (await session.pull(uri)).items
        assert found.range == types.Range(types.Position(1, 4), types.Position(1, 8))
        assert (found.code, found.severity) == ("over-budget", types.DiagnosticSeverity.Error)
        assert "peak memory of work is predicted to exceed its budget of 1 B (over 99 % probability)" in found.message
        [related] = found.related_information
        assert (related.location.uri, related.location.range.start) == (uri, types.Position(0, 7))
        session.change(uri, OVER.replace("1 B", "1 GiB"))
        assert await codes(session, uri) == []
        session.change(uri, f"# rlm: ignore\n{OVER}")
        assert await codes(session, uri) == []


async def test_reported_items_are_not_reported_again(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        first = await session.pull(uri)
        again = await session.pull(uri, first.result_id)
        assert (again.kind, again.result_id) == ("unchanged", first.result_id)
        session.change(uri, OVER.replace("1 B", "2 B"))
        assert (await session.pull(uri, first.result_id)).kind == "full"


async def test_a_client_with_refresh_support_gets_an_immediate_answer_and_a_refresh(tmp_path: Path) -> None:
    async with recording(client(refresh=True), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        await session.pull(uri)
        await session.wait(types.WORKSPACE_DIAGNOSTIC_REFRESH)
        assert await codes(session, uri) == ["over-budget"]


async def test_malformed_comments_are_reported_without_a_model(tmp_path: Path) -> None:
    async with recording(client(), tmp_path, options={"model": str(tmp_path / "none")}) as session:
        uri = session.open(tmp_path / "a.py", f"# rlm: latency < 1 parsec\n{SIMPLE}# rlm: sizes M=\n")
        assert await codes(session, uri) == ["malformed-budget", "malformed-sizes"]


KERNEL = "import triton\n\n\n{comment}@triton.jit\ndef add(x, n):\n    pass\n"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("M", "M is not NAME=VALUE"),
        ("M=1 M=2", "M is given twice"),
        ("width=4", "unknown size width"),
        ("dtype=word", "unknown type word"),
        ("M=0", "0 is not a size"),
        ("M=-x", "-x is neither a size nor a word"),
    ],
)
async def test_messages_are_plain_text(tmp_path: Path, sizes: str, said: str) -> None:
    async with recording(client(), tmp_path, options={"model": str(tmp_path / "none")}) as session:
        comment = f"# rlm: latency < 1 ms on\n# rlm: sizes {sizes}\n"
        uri = session.open(tmp_path / "a.py", KERNEL.format(comment=comment))
        assert set(await codes(session, uri)) == {"malformed-budget", "malformed-sizes"}
        assert any(item.message.startswith(f"malformed sizes: {said}") for item in (await session.pull(uri)).items)


async def test_configured_budgets_count_and_their_mistakes_are_reported_in_their_file(tmp_path: Path) -> None:
    config = tmp_path / "rlm-lsp.toml"
    config.write_text('[budgets]\n"*.py" = "memory < 1 B, latency < 1 parsec"\n')
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", SLOW)
        [found] = (await session.pull(uri)).items
        assert found.related_information[0].location.uri == config.as_uri()
        assert found.related_information[0].location.range.start == types.Position(1, 10)
        assert [(item.uri, [one.code for one in item.items]) for item in await session.pull_all()] == [
            (uri, ["over-budget"]),
            (config.as_uri(), ["malformed-budget"]),
        ]
        opened = session.open(config, language="toml")
        assert await codes(session, opened) == ["malformed-budget"]
        session.change(opened, "[budgets]\n")
        assert await codes(session, opened) == []


async def test_a_cost_that_has_grown_since_head_is_one_hint_where_the_settings_ask_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    (tmp_path / "rlm-lsp.toml").write_text("change-diagnostics = true\n")
    path.write_text(FIXED)
    commit(tmp_path, [path])
    async with recording(client(), tmp_path) as session:
        uri = session.open(path)
        assert await codes(session, uri) == []
        session.change(uri, FIXED_SLOW)
        [found] = (await session.pull(uri)).items
        assert (found.code, found.severity) == ("regression", types.DiagnosticSeverity.Hint)
        assert re.search(r"is predicted to grow (about|over) ", found.message)
        assert "`" not in found.message
        session.change(uri, f"# rlm: ignore\n{FIXED_SLOW}")
        assert await codes(session, uri) == []


async def test_edits_that_are_not_committed_have_no_diagnostics_by_default(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SIMPLE)
    commit(tmp_path, [path])
    async with recording(client(), tmp_path) as session:
        assert await codes(session, session.open(path, SLOW)) == []


async def test_settings_switch_diagnostics_off(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text('exclude = ["b.py"]\n')
    async with recording(client(), tmp_path) as session:
        assert await codes(session, session.open(tmp_path / "b.py", OVER)) == []
        assert await codes(session, session.open(tmp_path / "a.py", OVER)) == ["over-budget"]
    async with recording(client(), tmp_path, options={"diagnostics": False}) as session:
        assert await codes(session, session.open(tmp_path / "a.py", OVER)) == []


async def test_a_workspace_report_covers_what_is_open_and_clears_what_is_gone(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        one, two = session.open(tmp_path / "a.py", OVER), session.open(tmp_path / "b.py", SIMPLE)
        [report] = await session.pull_all()
        assert (report.uri, report.version) == (one, 1)
        known = [types.PreviousResultId(one, report.result_id), types.PreviousResultId(two, "old")]
        assert [(item.uri, item.kind) for item in await session.pull_all(*known)] == [(one, "unchanged"), (two, "full")]
        session.close(one)
        assert [(item.uri, list(item.items)) for item in await session.pull_all(known[0])] == [(one, [])]


async def test_a_client_without_pull_diagnostics_gets_pushed_ones(tmp_path: Path) -> None:
    config = tmp_path / "rlm-lsp.toml"
    config.write_text('[budgets]\n"*.go" = "latency < 1 parsec"\n')
    async with recording(client(pull=False), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        await session.wait(
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, lambda params: params.uri == uri and params.diagnostics
        )
        assert [item.code for item in await session.published(uri, 1)] == ["over-budget"]
        version = session.change(uri, SIMPLE)
        assert await session.published(uri, version) == []
        assert [item.code for item in await session.published(config.as_uri(), None)] == ["malformed-budget"]


async def test_nothing_is_shown_for_what_is_closed_renamed_or_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    async with recording(client(pull=False), tmp_path) as session:
        closed = session.open(tmp_path / "closed.py", OVER)
        renamed, deleted = session.open(tmp_path / "renamed.py", OVER), session.open(folder / "deleted.py", OVER)
        stays = session.open(tmp_path / "folder2.py", OVER)
        session.close(closed)
        rename = types.FileRename(renamed, (tmp_path / "new.py").as_uri())
        session.client.workspace_did_rename_files(types.RenameFilesParams([rename]))
        session.client.workspace_did_delete_files(types.DeleteFilesParams([types.FileDelete(folder.as_uri())]))
        for uri in (closed, renamed, deleted):
            assert await session.published(uri, None) == []
        version = session.change(stays, f"\n{OVER}")
        assert [item.code for item in await session.published(stays, version)] == ["over-budget"]
        newest = {p.uri: p.diagnostics for p in session.sent(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)}
        assert not any(newest[uri] for uri in (closed, renamed, deleted))


async def test_edits_during_inference_never_publish_a_result_for_an_older_version(tmp_path: Path) -> None:
    def text(number: int) -> str:
        # Each version has other functions to predict, and tells its number in a mistake.
        body = "return [sorted(range(n + {0})) for _ in range(n * {1})]"
        functions = "".join(
            f"# rlm: memory < 1 B\ndef f{number}_{one}(n):\n    {body.format(number, one)}\n" for one in range(20)
        )
        return f"# rlm: latency < 1 v{number}\n{functions}"

    options = {"debounceMs": 0}
    async with recording(client(pull=False), tmp_path, options=options) as session:
        uri = session.open(tmp_path / "a.py", text(1))
        await session.published(uri, 1)
        read: list[tuple[int, int]] = []
        for number in range(2, 42):
            version = session.change(uri, text(number))
            if number % 3 == 0:
                # The model has begun with this version when the next one comes.
                params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(2, 0))
                assert await session.client.text_document_hover_async(params)
            if number % 10 == 0:
                await session.published(uri, version)
            await session.handled()
            # What comes from here on the server has sent after it read this version.
            read.append((len(session.received), version))
        await session.published(uri, session.versions[uri])
        published = session.sent(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        for start, version in read:
            later = [p for method, p in session.received[start:] if method == types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]
            assert all(params.version >= version for params in later)
        for params in published:
            assert f"'v{params.version}'" in params.diagnostics[0].message
            assert all(f" f{params.version}_" in item.message for item in params.diagnostics[1:])
        assert {len(params.diagnostics) for params in published} <= {1, 21}
        assert len(published[-1].diagnostics) == 21
