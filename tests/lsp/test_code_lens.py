"""Code lenses over a real connection: above programs and modules, with all metrics by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rlm_core import Band
from rlm_lsp.rendering import labels as render

from tests.rlm_lsp.findings.support import commit

from .clients import CLIENTS

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
Predict = Callable[[Path], list[dict[str, Any]]]


def title(rows: list[dict[str, Any]]) -> str:
    return " · ".join(
        f"{render.METRIC_WORDS[row['metric']]}"
        f" {render.band(row['metric'], Band(row['low'], row['high'], row['coverage']))}"
        for row in rows
    )


async def lenses(session: Any, uri: str) -> list[Any]:
    """Ask for lenses until there are some, again after each refresh."""
    while not (found := await session.lenses(uri)):
        await session.refreshes.get()
    return list(found)


@pytest.mark.parametrize("editor", CLIENTS)
async def test_a_program_has_a_lens_with_all_its_metrics(
    start: Start, examples: Path, predict: Predict, editor: str
) -> None:
    rows = [row for row in predict(examples / "solution.py") if row["basis"] == "program"]
    session = await start(editor=editor)
    uri = session.open(examples / "solution.py")
    [lens] = await lenses(session, uri)
    assert lens.range.start.line == rows[0]["line"] - 1
    assert lens.command.title == title(rows)
    assert lens.command.command == "rlm-lsp.explain"
    assert lens.command.arguments[0] == uri
    assert lens.command.arguments[1]["line"] == lens.range.start.line


async def test_functions_and_what_the_model_abstains_from_have_no_lens(
    start: Start, unsized_module: Path, examples: Path
) -> None:
    session = await start(refresh=False)
    assert await session.lenses(session.open(examples / "functions.py")) == []
    assert await session.lenses(session.open(unsized_module)) == []


async def test_settings_switch_lenses_off(start: Start, examples: Path) -> None:
    session = await start(refresh=False, options={"codeLens": False})
    assert await session.lenses(session.open(examples / "solution.go", language="go")) == []


async def test_a_lens_shows_changes_too(start: Start, tmp_path: Path, examples: Path) -> None:
    before = (examples / "solution.py").read_text()
    commit(tmp_path, {"solution.py": before})
    session = await start(options={"changeRatio": 1, "changeConfidence": 0.5})
    loops = ("for a in nums:", "    for b in nums:", "        for c in sorted(nums):", "            a += b * c")
    loop = "".join(f"        {line}\n" for line in loops)
    after = before.rstrip("\n") + "\n" + loop
    uri = session.open(tmp_path / "solution.py", after)
    while True:
        [lens] = await lenses(session, uri)
        if "×" in lens.command.title:
            break
        await session.refreshes.get()
    assert "latency" in lens.command.title
