"""Hover over a real connection: all numbers of the command line, their calibration, and reasons to abstain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rlm_core import Band
from rlm_lsp import render

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
Predict = Callable[[Path], list[dict[str, Any]]]


def shown(row: dict[str, Any]) -> str:
    return render.band(row["metric"], Band(row["low"], row["high"], row["coverage"], 0, 0, ""))


@pytest.mark.parametrize("markup", ["markdown", "plaintext"])
async def test_the_hover_has_the_numbers_of_the_command_line(
    start: Start, examples: Path, predict: Predict, markup: str
) -> None:
    session = await start(markup=markup)
    uri = session.open(examples / "functions.py")
    for row in predict(examples / "functions.py"):
        text = await session.hover(uri, row["line"] - 1, 6)
        assert shown(row) in text
        assert row["median"] == 0 or render.quantity(row["metric"], row["median"]) in text
        assert row["qualname"] in text
        assert f"model {row['model']}" in text
        assert f"device {row['device']}" in text
        assert ("| median |" in text) == (markup == "markdown")


async def test_the_hover_says_on_what_the_band_was_calibrated(start: Start, examples: Path) -> None:
    session = await start()
    text = await session.hover(session.open(examples / "functions.py"), 13)
    assert "one call, as its tests call it" in text
    assert "latency: 80 % band, calibrated on " in text
    assert "peak memory: 80 % band, calibrated on " in text
    assert " measurements, " in text


async def test_a_program_is_hovered_on_its_class(start: Start, examples: Path) -> None:
    session = await start()
    text = await session.hover(session.open(examples / "Solution.java", language="java"), 1)
    assert "`Solution`" in text
    assert "a whole solution on the judge's inputs" in text


async def test_only_headers_have_a_hover(start: Start, examples: Path) -> None:
    session = await start()
    uri = session.open(examples / "functions.py")
    assert await session.hover(uri, 15, 4) is None
    assert await session.hover(uri, 0) is None


async def test_the_innermost_unit_counts(start: Start, tmp_path: Path) -> None:
    session = await start()
    uri = session.open(tmp_path / "a.py", "def outer():\n    def inner(): return 1\n    return inner\n")
    assert "outer.<locals>.inner" in await session.hover(uri, 1)
    assert "`outer`" in await session.hover(uri, 0)


async def test_the_hover_says_why_the_model_abstains(start: Start, examples: Path, predict: Predict) -> None:
    [row] = predict(examples / "kernel.py")
    session = await start()
    text = await session.hover(session.open(examples / "kernel.py"), row["line"] - 1)
    assert f"latency: no prediction, {row['abstained']}" in text
