"""Measured values over a real connection: beside the predicted ones, stale after an edit, and how to make them."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rlm_core.cpu_score import cpu_name
from rlm_core.measure import Store
from rlm_core.measure.sources import SourceFile

from ..fakes import unpadded
from ..unit.core.test_measure_store import measurement
from .recording import recording
from .test_code_actions import actions, client

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
TEXT = "def f(n):\n    return sorted(range(n))\n"


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a package whose function `f` is measured."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    path = tmp_path / "shapes" / "area.py"
    path.parent.mkdir()
    path.with_name("__init__.py").touch()
    path.write_text(TEXT)
    source = SourceFile(path).function("f", 1)
    assert source is not None
    today = datetime.now(UTC).isoformat(timespec="seconds")
    one = measurement(source_hash=source.hash, device=cpu_name(), path=str(path.resolve()), measured_at=today)
    Store(tmp_path / "home" / "rlm-lsp" / "measurements.sqlite3").add([one])
    return path


async def test_the_hover_has_the_measured_value_and_says_when_it_is_stale(start: Start, measured: Path) -> None:
    session = await start()
    uri = session.open(measured)
    text = await session.hover(uri, 0, 4)
    assert "| | median | measured | 80 % band | 90 % band |" in unpadded(text)
    assert "| 2 µs |" in unpadded(text)
    assert f"measured on {cpu_name()}, cpython-3.12, {datetime.now(UTC).date()}" in text
    assert "stale" not in text
    session.change(uri, f"# A comment changes nothing.\n{TEXT}")
    assert "| 2 µs |" in unpadded(await session.hover(uri, 1, 4))
    session.change(uri, TEXT.replace("sorted", "list"))
    assert "| 2 µs (stale) |" in unpadded(await session.hover(uri, 0, 4))


async def test_the_tooltip_of_a_hint_has_the_measured_value_too(start: Start, measured: Path) -> None:
    session = await start(editor="vscode")
    uri = session.open(measured)
    await session.labels(uri, 1)
    [hint] = await session.hints(uri)
    tooltip = (await session.client.inlay_hint_resolve_async(hint)).tooltip
    assert "| 2 µs |" in unpadded(tooltip.value)


async def test_a_store_that_cannot_be_read_costs_only_the_measured_values(start: Start, measured: Path) -> None:
    store = measured.parents[1] / "home" / "rlm-lsp" / "measurements.sqlite3"
    store.unlink()
    store.mkdir()
    session = await start()
    text = await session.hover(session.open(measured), 0, 4)
    assert "median" in text
    assert "measured" not in text


async def test_the_command_that_measures_is_shown_and_not_run(measured: Path, tmp_path: Path) -> None:
    async with recording(client(literals=False), tmp_path) as session:
        uri = session.open(measured, TEXT)
        await session.pull(uri)
        found = await actions(session, uri, 0)
        [action] = [one for one in found if one.command == "rlm-lsp.measureCommand"]
        command = await session.command(action.command, *action.arguments)
        assert shlex.split(command)[2:] == ["&&", "rlm-lsp", "measure", "tests", "--package", "shapes"]
        outside = session.open(tmp_path / "alone.py", TEXT)
        await session.pull(outside)
        assert "rlm-lsp.measureCommand" not in [one.command for one in await actions(session, outside, 0)]
