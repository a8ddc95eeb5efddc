"""Measured values over a real connection: in place of predicted ones, carried over by an edit, and how to make them."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement import Store
from rlm_core.measurement.functions.sources import FunctionFile
from rlm_core.measurement.gpu.measurements import measurements_of
from rlm_lsp.cli.app import app
from rlm_lsp.rendering.escaping import markdown

from tests.fakes import unpadded
from tests.rlm_core.measurement.gpu.test_measurements import KERNELS, kernel_row
from tests.rlm_core.measurement.test_store import measurement

from .onnx_models import write_networks
from .recording import recording
from .test_code_actions import actions, client
from .test_overview import ask, plain

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
TEXT = "def f(n):\n    return sorted(range(n))\n"
NOW = datetime.now(UTC).isoformat(timespec="seconds")


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a package whose function `f` is measured."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    path = tmp_path / "shapes" / "area.py"
    path.parent.mkdir()
    path.with_name("__init__.py").touch()
    path.write_text(TEXT)
    source = FunctionFile(path).function("f", 1)
    assert source is not None
    one = measurement(
        source_hash=source.hash,
        device=cpu_name(),
        path=str(path.resolve()),
        measured_at=NOW,
        text=source.measured_text,
    )
    Store(tmp_path / "home" / "rlm-lsp" / "measurements.sqlite3").add([one])
    return path


async def test_the_hover_has_the_measured_value_and_carries_it_over_to_a_changed_text(
    start: Start, measured: Path
) -> None:
    session = await start()
    uri = session.open(measured)
    text = await session.hover(uri, 0, 4)
    assert "| | median | 80 % band | 90 % band | predicted |" in unpadded(text)
    assert "| latency | ✓ 2 µs | 1–8 µs | | " in unpadded(text)
    assert markdown(f"measured on {cpu_name()}, cpython-3.12, {NOW[:10]}") in text
    assert "stale" not in text
    session.change(uri, f"# A comment changes nothing.\n{TEXT}")
    assert "| ✓ 2 µs |" in unpadded(await session.hover(uri, 1, 4))
    session.change(uri, TEXT.replace("sorted", "list"))
    text = await session.hover(uri, 0, 4)
    assert "| latency | ≈ " in unpadded(text)
    assert "latency: 2 µs measured, times " in text


async def test_an_edit_of_what_a_measured_function_calls_moves_its_number(start: Start, measured: Path) -> None:
    text = "import time\n\n\ndef helper(n):\n    return n\n\n\ndef caller(n):\n    return helper(n) + 1\n"
    measured.write_text(text)
    store = Store(measured.parents[1] / "home" / "rlm-lsp" / "measurements.sqlite3")
    for line, name in ((4, "helper"), (8, "caller")):
        source = FunctionFile(measured).function(name, line)
        assert source is not None
        its = {
            "source_hash": source.hash,
            "text": source.measured_text,
            "qualname": name,
            "path": str(measured.resolve()),
        }
        store.add([measurement(device=cpu_name(), measured_at=NOW, **its)])
    session = await start()
    uri = session.open(measured)
    assert "| ✓ 2 µs |" in unpadded(await session.hover(uri, 7, 4))
    session.change(uri, text.replace("    return n\n", "    return sum(sum(range(n)) for _ in range(n))\n"))
    changed = await session.hover(uri, 7, 4)
    assert "| latency | ≈ " in unpadded(changed)
    assert "measured before the code changed, on " in changed
    # A wait that the text states is added to what was measured, and no factor of it.
    session.change(uri, text.replace("    return n\n", "    time.sleep(2)\n    return n\n"))
    assert "| latency | 2 s | 2 s | " in unpadded(await session.hover(uri, 8, 4))
    session.change(uri, text)
    assert "| ✓ 2 µs |" in unpadded(await session.hover(uri, 7, 4))


async def test_the_tooltip_of_a_hint_has_the_measured_value_too(start: Start, measured: Path) -> None:
    session = await start(editor="vscode")
    uri = session.open(measured)
    await session.labels(uri, 1)
    [hint] = await session.hints(uri)
    tooltip = (await session.client.inlay_hint_resolve_async(hint)).tooltip
    assert "| ✓ 2 µs |" in unpadded(tooltip.value)


async def test_a_store_that_cannot_be_read_costs_only_the_measured_values(start: Start, measured: Path) -> None:
    store = measured.parents[1] / "home" / "rlm-lsp" / "measurements.sqlite3"
    store.unlink()
    store.mkdir()
    session = await start()
    text = await session.hover(session.open(measured), 0, 4)
    assert "median" in text
    assert "measured" not in text


async def test_a_kernel_has_what_the_bench_measured_on_each_device(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    path = tmp_path / "softmax.py"
    path.write_text(KERNELS)
    taken = measurements_of([kernel_row(path, date=NOW)], {"softmax.py": path})
    Store(tmp_path / "home" / "rlm-lsp" / "measurements.sqlite3").add(taken.measurements)
    session = await start(options={"devices": ["A100", "H100"]})
    uri = session.open(path)
    line = KERNELS[: KERNELS.index("def softmax_kernel")].count("\n")
    [on_a100, on_h100] = [one for one in (await session.hover(uri, line, 6)).splitlines() if "| nvidia-" in one]
    assert "| ✓ 20 µs |" in unpadded(on_a100)
    assert "✓" not in on_h100
    session.change(uri, KERNELS.replace("exp", "log"))
    text = await session.hover(uri, line, 6)
    assert "✓" not in text
    place = f"on nvidia-a100-sxm4-80gb at dtype fp16, m 4096, n 1024, triton-3.7.1, {NOW[:10]}"
    assert f"measured {place}: latency 20 µs (stale) (" in text


async def test_a_network_has_what_the_bench_measured_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    write_networks(tmp_path)
    path = tmp_path / "small.onnx"
    command = ["bench", "onnx", str(path), "--provider", "CPUExecutionProvider", "--seconds", "0.01"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "rows.jsonl")])
    assert done.exit_code == 0, done.output
    async with recording(types.ClientCapabilities(), tmp_path) as session:
        answer = await ask(session, "rlm-lsp/network", uri=path.as_uri())
        [line] = answer["measured"]
        assert line.startswith(f"measured on {cpu_name()} at batch 1, onnxruntime-")
        assert "latency " in line
        path.write_bytes((tmp_path / "large.onnx").read_bytes())
        answer = await ask(session, "rlm-lsp/network", uri=path.as_uri())
        assert " (stale) (" in answer["measured"][0]
        assert answer["measured"][1].startswith("stale: ")
        assert (await ask(session, "rlm-lsp/network", uri=(tmp_path / "large.onnx").as_uri()))["measured"] == []


async def test_the_command_that_measures_is_shown_and_not_run(measured: Path, tmp_path: Path) -> None:
    async with recording(client(literals=False), tmp_path) as session:
        uri = session.open(measured, TEXT)
        await session.pull(uri)
        found = await actions(session, uri, 0, 4)
        [action] = [one for one in found if one.command == "rlm-lsp.measureCommand"]
        command = await session.command(action.command, *action.arguments)
        assert shlex.split(command)[2:] == ["&&", "rlm-lsp", "measure", "tests", "--package", "shapes"]
        outside = session.open(tmp_path / "alone.py", TEXT)
        await session.pull(outside)
        assert "rlm-lsp.measureCommand" not in [one.command for one in await actions(session, outside, 0, 4)]


async def test_the_setting_switches_the_command_off(measured: Path, tmp_path: Path) -> None:
    async with recording(client(literals=False), tmp_path, options={"measure": False}) as session:
        uri = session.open(measured, TEXT)
        await session.pull(uri)
        assert "rlm-lsp.measureCommand" not in [one.command for one in await actions(session, uri, 0, 4)]
        with pytest.raises(JsonRpcException, match="the setting `measure` switches measurements off"):
            await session.command("rlm-lsp.measureCommand", uri)


PACKAGE = '''"""Shapes."""


def total(rows: list[int]) -> int:
    result = 0
    for row in rows:
        result += row * row
    return result


def largest(rows: list[int]) -> int:
    return max(rows)
'''
TESTS = """from shapes import area


def test_total() -> None:
    for _ in range(8):
        assert area.total(list(range(2000))) > 0
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose function `total` is measured, really, and whose function `largest` no test calls."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    folder = tmp_path / "project"
    (folder / "shapes").mkdir(parents=True)
    (folder / "shapes" / "__init__.py").touch()
    (folder / "shapes" / "area.py").write_text(PACKAGE)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_area.py").write_text(TESTS)
    return folder


def measure(project: Path, path: Path) -> None:
    """Measure a project once. Its latencies count here, also if other work on the machine disturbed the calibration."""
    command = [sys.executable, "-m", "rlm_lsp", "measure", "tests", "--python", sys.executable]
    subprocess.run(command, cwd=project, capture_output=True, timeout=120, check=True)
    store = Store(path)
    store.add([replace(one, ok=True) for one in store.all() if not one.ok])


def rlm_lsp(*arguments: str) -> str:
    """The output of a command."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


MEASURED = re.compile(r"[✓≈]\?? ([\d.]+) (ns|µs|ms|s)\b")  # or carried over from a measurement


def microseconds(label: str) -> float:
    """The median in a marked label."""
    found = MEASURED.search(label)
    assert found is not None, label
    return float(found[1]) * {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}[found[2]]


async def overview_row(session: Any, qualname: str) -> dict[str, Any]:
    """The latency of a unit in the overview of the workspace."""
    answer = plain(await session.client.protocol.send_request_async("rlm-lsp/overview", {}))
    [row] = [row for row in answer["rows"] if row["qualname"] == qualname]
    found: dict[str, Any] = row
    return found


@pytest.mark.timeout(240)
async def test_a_project_is_measured_edited_and_shared(
    start: Start, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "shapes" / "area.py"
    total, largest = (PACKAGE[: PACKAGE.index(f"def {name}")].count("\n") for name in ("total", "largest"))
    session = await start(folder=project)
    uri = session.open(path)
    before = await session.labels(uri, 2)
    assert not any(mark in label for label in before.values() for mark in "✓≈")
    session.forget_refreshes()
    # Measured while the server runs: it notices.
    await asyncio.to_thread(measure, project, tmp_path / "home" / "rlm-lsp" / "measurements.sqlite3")
    while not MEASURED.search((labels := await session.labels(uri, 2))[total]):
        await session.refreshes.get()
    measured = microseconds(labels[total])
    # What was not measured itself is still a prediction, which what was measured in its file may move.
    assert "✓" not in labels[largest]
    row = await overview_row(session, "total")
    assert row["source"] == "measured"
    assert row["medianText"].startswith("✓ ")
    assert row["sourceText"].startswith("measured 20")
    # Without the hint of what was measured: a prediction reads it, a measurement does not.
    session.change(uri, PACKAGE.replace("result", "value").replace(": list[int]", "", 1))
    renamed = await session.labels(uri, 2)
    assert (renamed[total], renamed[largest]) == (labels[total], labels[largest])
    # A loop around the loop.
    loop = "    for row in rows:\n        result += row * row\n"
    nested = "    for other in rows:\n        for row in rows:\n            result += row * other\n"
    session.change(uri, PACKAGE.replace(loop, nested))
    while "≈" not in (edited := await session.labels(uri, 2))[total]:
        await session.refreshes.get()
    assert microseconds(edited[total]) > 1.2 * measured
    hover = await session.hover(uri, total, 4)
    assert "the predicted ratio of the present code to the measured one" in hover
    assert "measured before the code changed, on " in hover
    session.change(uri, PACKAGE.replace(loop, "    result = len(rows)\n"))
    while (faster := await session.labels(uri, 2))[total] == edited[total]:
        await session.refreshes.get()
    assert "≈" in faster[total]
    assert microseconds(faster[total]) < measured / 1.5
    monkeypatch.chdir(project)
    # The same for everyone who has the project, on the command line too.
    rlm_lsp("measure", "export", "--to", ".rlm")
    committed = (project / ".rlm" / "measurements.jsonl").read_bytes()
    rlm_lsp("measure", "export", "--to", ".rlm")
    assert (project / ".rlm" / "measurements.jsonl").read_bytes() == committed
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another home"))
    rows = json.loads(rlm_lsp("predict", "shapes", "--format", "json"))
    assert {(row["qualname"], row["metric"], row["source"]) for row in rows} == {
        ("total", "latency", "measured"),
        ("total", "memory", "measured"),
        ("largest", "latency", "predicted"),
        ("largest", "memory", "predicted"),
    }
    [latency] = [row for row in rows if (row["qualname"], row["metric"]) == ("total", "latency")]
    assert latency["measured"]["committed"]
    assert latency["median"] * 1e6 == pytest.approx(measured, rel=0.06)
