"""Inlay hints over a real connection: the numbers of the command line, at the right place, after every edit."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from rlm_lsp.rendering import labels as render

from .clients import CLIENTS, resolves_tooltips

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
Predict = Callable[[Path], list[dict[str, Any]]]
LabelsOf = Callable[[list[dict[str, Any]]], dict[int, str]]
SLOW_MEAN = "return sum(sorted(value for value in values for _ in sorted(values))) / len(values) ** 2"


SLOW_WORK = "def work(n):\n    return [sorted(range(n), key=lambda x: -x) for _ in range(n * n)]\n"


def make_package(folder: Path) -> tuple[Path, Path]:
    """A package of two modules: one calls the other."""
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    caller, callee = package / "caller.py", package / "callee.py"
    caller.write_text("from .callee import work\n\ndef run(n):\n    return work(n)\n")
    callee.write_text("def work(n):\n    return n\n")
    return caller, callee


async def test_hints_are_the_bands_of_the_command_line(
    start: Start, examples: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    session = await start()
    for name, language in (("functions.py", "python"), ("solution.cpp", "cpp"), ("solution.js", "javascriptreact")):
        expected = labels_of(predict(examples / name))
        assert expected
        assert await session.labels(session.open(examples / name, language=language), len(expected)) == expected


async def test_an_ordinary_file_has_no_hint_unless_a_comment_asks_for_it(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "service.ts"
    path.write_text("import { api } from './api';\n\nexport const load = (id: number) => api.get(id);\n")
    session = await start()
    uri = session.open(path, language="typescript")
    assert await session.hints(uri) == []
    session.change(uri, f"// rlm: program\n{path.read_text()}")
    assert set(await session.labels(uri, 1)) == {3}
    session.change(uri, path.read_text())
    assert await session.hints(uri) == []


async def test_hints_follow_the_signature(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    lines = (examples / "functions.py").read_text().splitlines()
    hints = await session.hints(session.open(examples / "functions.py"))
    assert all(hint.position.character == len(lines[hint.position.line]) for hint in hints)
    assert all(lines[hint.position.line].lstrip().startswith("def ") for hint in hints)


async def test_only_units_in_the_requested_range_get_hints(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    uri = session.open(examples / "functions.py")
    everywhere = [hint.position.line for hint in await session.hints(uri)]
    inside = types.Range(types.Position(everywhere[1], 0), types.Position(everywhere[3], 0))
    assert [hint.position.line for hint in await session.hints(uri, inside)] == everywhere[1:3]


async def test_a_client_without_refresh_gets_all_hints_at_the_first_request(
    start: Start, examples: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    session = await start(refresh=False)
    hints = await session.hints(session.open(examples / "functions.py"))
    expected = labels_of(predict(examples / "functions.py"))
    assert {hint.position.line: hint.label for hint in hints} == expected


async def test_an_edit_changes_the_function_and_its_callers_and_nothing_else(
    start: Start, examples: Path, tmp_path: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    before_text = (examples / "functions.py").read_text()
    after_text = before_text.replace("return sum(values) / len(values)", SLOW_MEAN)
    path = tmp_path / "functions.py"
    path.write_text(after_text)
    after = predict(path)
    path.write_text(before_text)
    before = predict(path)
    changed = {new["qualname"] for old, new in zip(before, after, strict=True) if old["median"] != new["median"]}
    assert changed == {"mean", "variance", "standardize", "correlation"}

    session = await start()
    uri = session.open(path)
    assert await session.labels(uri, len(labels_of(before))) == labels_of(before)
    session.change(uri, after_text)
    # All but the edited function is there at once, the callers as they were; the rest comes with refreshes.
    names = {row["line"] - 1: row["qualname"] for row in after}
    at_once = {hint.position.line: hint.label for hint in await session.hints(uri)}
    assert {names[line] for line in at_once} == set(names.values()) - {"mean"}
    assert at_once.items() <= labels_of(before).items()
    while await session.labels(uri, len(labels_of(after))) != labels_of(after):
        await session.refreshes.get()


async def test_results_after_an_edit_are_announced_by_a_refresh(start: Start, examples: Path) -> None:
    session = await start()
    uri = session.open(examples / "solution.go", language="go")
    await session.labels(uri, 1)
    session.change(uri, (examples / "solution.go").read_text().replace("best := prices[0], 0", "best := prices[0], 1"))
    assert await session.hints(uri) == []
    # Asks again only after a refresh.
    assert len(await session.labels(uri, 1)) == 1


async def test_only_the_newest_of_many_quick_edits_counts(
    start: Start, tmp_path: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(n):\n    return sum(range(n)) + 29\n")
    session = await start()
    uri = session.open(path, "def f(n):\n    return 0\n")
    pending = []
    for number in range(30):
        session.change(uri, f"def f(n):\n    return sum(range(n)) + {number}\n")
        pending.append(asyncio.ensure_future(session.hints(uri)))
    await asyncio.gather(*pending)
    assert await session.labels(uri, 1) == labels_of(predict(path))


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
async def test_columns_count_in_the_units_that_were_agreed_on(
    start: Start, tmp_path: Path, encoding: str, units: int
) -> None:
    session = await start(refresh=False, encoding=encoding)
    uri = session.open(tmp_path / "a.py", "x = '\x0c'\ndef f(mark='😀'):\n    return mark\n")
    [hint] = await session.hints(uri)
    assert hint.position == types.Position(1, len("def f(mark=''):") + units)


async def test_an_edit_of_a_callee_in_another_file_refreshes_its_callers(
    start: Start, tmp_path: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    caller, callee = make_package(tmp_path)
    session = await start()
    uris = [session.open(path) for path in (caller, callee)]
    before = labels_of(predict(caller))
    assert [len(await session.labels(uri, 1)) for uri in uris] == [1, 1]
    session.forget_refreshes()
    session.change(uris[1], SLOW_WORK)
    await session.refreshes.get()
    callee.write_text(SLOW_WORK)
    after = labels_of(predict(caller))
    assert after != before
    assert await session.labels(uris[0], 1) == after


async def test_a_callee_that_changes_on_disk_refreshes_its_callers(
    start: Start, tmp_path: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    caller, callee = make_package(tmp_path)
    session = await start()
    uri = session.open(caller)
    assert await session.labels(uri, 1) == labels_of(predict(caller))
    assert session.registered == ["workspace/didChangeWatchedFiles"]
    session.forget_refreshes()
    callee.write_text(SLOW_WORK)
    event = types.FileEvent(callee.as_uri(), types.FileChangeType.Changed)
    session.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    await session.refreshes.get()
    assert await session.labels(uri, 1) == labels_of(predict(caller))


async def test_settings_choose_metrics_and_languages(start: Start, examples: Path) -> None:
    session = await start(refresh=False, options={"metrics": ["memory"], "languages": ["python"]})
    hints = await session.hints(session.open(examples / "functions.py"))
    assert hints
    assert all("B" in hint.label and "s" not in hint.label for hint in hints)
    assert await session.hints(session.open(examples / "solution.go", language="go")) == []


async def test_units_on_which_the_model_abstains_get_no_hint(
    start: Start, unsized_module: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    path = unsized_module
    path.write_text(f"{path.read_text()}\n\ndef f(n):\n    return n\n")
    rows = predict(path)
    assert [row["qualname"] for row in rows if row["abstained"]] == ["GatedMlp"]
    session = await start(refresh=False)
    hints = await session.hints(session.open(path))
    assert {hint.position.line: hint.label for hint in hints} == labels_of(rows)


async def test_a_module_has_one_hint_and_its_forward_none(
    start: Start, examples: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    session = await start()
    expected = labels_of(predict(examples / "module.py"))
    assert list(expected) == [6]
    assert await session.labels(session.open(examples / "module.py"), 1) == expected


@pytest.mark.parametrize("editor", CLIENTS)
async def test_each_editor_gets_its_hints_and_their_tooltips(
    start: Start, examples: Path, tmp_path: Path, predict: Predict, labels_of: LabelsOf, editor: str
) -> None:
    session = await start(editor=editor)
    # Outside a repository: what is known of HEAD comes when it comes.
    uri = session.open(tmp_path / "functions.py", (examples / "functions.py").read_text())
    expected = labels_of(predict(examples / "functions.py"))
    assert await session.labels(uri, len(expected)) == expected
    hint = (await session.hints(uri))[0]
    hover = await session.hover(uri, hint.position.line, 5)
    if not resolves_tooltips(editor):
        assert hint.tooltip == "latency, peak memory: 80 % band of one call, as tests would call it"
    else:
        assert hint.tooltip is None
        resolved = await session.client.inlay_hint_resolve_async(hint)
        assert resolved.tooltip == types.MarkupContent(types.MarkupKind.Markdown, hover)
        assert resolved.label == hint.label


async def test_a_hint_of_an_older_version_gets_no_tooltip(start: Start, tmp_path: Path) -> None:
    session = await start(editor="vscode")
    uri = session.open(tmp_path / "a.py", "def f(n):\n    return sum(range(n))\n")
    await session.labels(uri, 1)
    [hint] = await session.hints(uri)
    session.change(uri, "def f(n):\n    return sorted(range(n))\n")
    await session.labels(uri, 1)
    assert (await session.client.inlay_hint_resolve_async(hint)).tooltip is None


async def test_settings_choose_the_form_of_a_label(start: Start, examples: Path, predict: Predict) -> None:
    [first, *_] = predict(examples / "functions.py")
    median = render.quantity("latency", first["median"])
    cases: tuple[tuple[dict[str, Any], str | None], ...] = (
        ({"label": "median"}, median),
        ({"label": "median", "maxLabel": 8}, median),
        ({"label": "median", "hintsShown": "relevant", "hintsMinLatency": "1 s"}, None),
    )
    for options, shown in cases:
        session = await start(refresh=False, options={"metrics": ["latency"], **options})
        hints = await session.hints(session.open(examples / "functions.py"))
        labels = {hint.position.line + 1: hint.label for hint in hints}
        assert labels.get(first["line"]) == shown
        assert all(len(label) <= options.get("maxLabel", 25) for label in labels.values())


async def test_hints_can_be_switched_off(start: Start, examples: Path) -> None:
    session = await start(refresh=False, options={"hints": False})
    uri = session.open(examples / "functions.py")
    assert await session.hints(uri) == []
    assert await session.hover(uri, 13, 5) is not None


async def test_hints_of_unchanged_functions_move_with_an_edit_at_once(start: Start, examples: Path) -> None:
    session = await start(editor="vscode")
    text = (examples / "functions.py").read_text()
    uri = session.open(examples / "functions.py")
    before = await session.labels(uri, 16)
    session.change(uri, f"# a comment\n{text}")
    moved = await session.hints(uri)
    assert {hint.position.line: hint.label for hint in moved} == {line + 1: label for line, label in before.items()}
    resolved = await session.client.inlay_hint_resolve_async(moved[0])
    assert resolved.tooltip is not None


async def test_hints_of_a_file_or_a_language_are_toggled(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    uri = session.open(examples / "functions.py")
    for target in ({"file": uri}, {"language": "python"}):
        counts = []
        for _ in range(2):
            await session.client.workspace_execute_command_async(
                types.ExecuteCommandParams("rlm-lsp.toggleHints", [target])
            )
            counts.append(len(await session.hints(uri)))
        assert counts == [0, 16]


CHEAP = "def cheap(n):\n    return n + 1\n"
PAIRS = "def pairs(values):\n    return [(a, b) for a in values for b in values]\n"
WAITING = "import time\n\ndef waiting():\n    time.sleep(1)\n"


async def test_only_functions_that_matter_have_a_hint_and_all_have_a_hover(start: Start, tmp_path: Path) -> None:
    session = await start(refresh=False, shown="relevant")
    uri = session.open(tmp_path / "a.py", f"{CHEAP}\n\n{PAIRS}\n\n{WAITING}")
    hints = {hint.position.line for hint in await session.hints(uri)}
    assert hints == {4, 10}
    for line, name in ((0, "cheap"), (4, "pairs"), (10, "waiting")):
        assert name in (await session.hover(uri, line, 5) or "")


LINEAR = "def shout(words):\n    return [word.upper() for word in words]\n"


async def test_a_file_without_hints_shows_the_growth_of_one_function(start: Start, tmp_path: Path) -> None:
    session = await start(shown="relevant")
    uri = session.open(tmp_path / "a.py", f"{CHEAP}\n\n{LINEAR}")
    [(line, label)] = (await session.labels(uri, 1)).items()
    assert line == 4
    assert label.endswith(" \u221d n in words")
    uri = session.open(tmp_path / "b.py", f"{CHEAP}\n\n{LINEAR}\n\n{WAITING}")
    assert set(await session.labels(uri, 1)) == {10}


async def test_fast_growth_is_in_the_label(start: Start, tmp_path: Path) -> None:
    session = await start(refresh=False, shown="relevant")
    uri = session.open(tmp_path / "a.py", PAIRS)
    [hint] = await session.hints(uri)
    assert " \u221d n^2" in str(hint.label)


async def test_a_command_shows_the_hints_of_all_functions_and_hides_them_again(start: Start, tmp_path: Path) -> None:
    session = await start(refresh=False, shown="relevant")
    uri = session.open(tmp_path / "a.py", CHEAP)
    counts = [len(await session.hints(uri))]
    for expected in (True, False):
        params = types.ExecuteCommandParams("rlm-lsp.showAllHints", [])
        assert await session.client.workspace_execute_command_async(params) is expected
        counts.append(len(await session.hints(uri)))
    assert counts == [0, 1, 0]


@pytest.mark.parametrize("refresh", [True, False])
async def test_a_budget_in_reach_brings_a_hint_and_a_distant_one_none(
    start: Start, tmp_path: Path, *, refresh: bool
) -> None:
    session = await start(refresh=refresh, shown="relevant")
    uri = session.open(tmp_path / "a.py", f"# rlm: latency < 1 s\n{CHEAP}")
    assert await session.hints(uri) == []
    session.change(uri, f"# rlm: latency < 60 ns\n{CHEAP}")
    assert set(await session.labels(uri, 1)) == {1}
    session.change(uri, f"# rlm: latency < 1 s\n{CHEAP}")
    while await session.hints(uri):
        assert refresh
        await session.refreshes.get()


async def test_a_function_that_was_edited_since_head_has_a_hint(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CHEAP)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    session = await start(shown="relevant")
    uri = session.open(path)
    assert await session.hints(uri) == []
    session.change(uri, CHEAP.replace("n + 1", "n + 2"))
    assert set(await session.labels(uri, 1)) == {0}


async def test_a_label_with_its_space_has_at_most_25_characters(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    hints = await session.hints(session.open(examples / "functions.py"))
    assert hints
    assert all(hint.padding_left and len(str(hint.label)) < 25 for hint in hints)


async def test_a_unit_has_no_hint_where_the_client_shows_its_lens(start: Start, examples: Path) -> None:
    session = await start(refresh=False)
    uri = session.open(examples / "module.py")
    assert len(await session.hints(uri)) == 1
    assert len(await session.lenses(uri)) == 1
    assert await session.hints(uri) == []
    without = await start(refresh=False, options={"codeLens": False})
    uri = without.open(examples / "module.py")
    assert await without.lenses(uri) == []
    assert len(await without.hints(uri)) == 1


async def test_a_screen_of_a_long_file_that_was_just_opened_has_the_hints_of_the_whole_file(
    start: Start, tmp_path: Path, predict: Predict, labels_of: LabelsOf
) -> None:
    path = tmp_path / "long.py"
    function = "def f{0}(items):\n    return [sorted(items) + other for other in items for _ in range({0})]\n\n\n"
    path.write_text("".join(map(function.format, range(600))))
    expected = labels_of(predict(path))
    session = await start()
    uri = session.open(path)
    for first in (1200, 2000, 0):
        screen = types.Range(types.Position(first, 0), types.Position(first + 59, 0))
        on_screen = {line: label for line, label in expected.items() if first <= line < first + 60}
        assert len(on_screen) == 15
        while {hint.position.line: str(hint.label) for hint in await session.hints(uri, screen)} != on_screen:
            await session.refreshes.get()
