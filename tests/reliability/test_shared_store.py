"""Two servers, a run of ``rlm-lsp measure`` and other writers, all at once on one store of measurements."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement import Store
from rlm_core.measurement.functions.sources import FunctionFile

from tests.rlm_core.measurement.test_store import measurement

from .client import Client, session

pytestmark = [pytest.mark.timeout(240), pytest.mark.asyncio]

_SOURCE = "def total(rows):\n    return sum(row * row for row in rows)\n"
_TESTS = (
    "from shapes import area\n\n\ndef test_total():\n    for _ in range(8):\n        assert area.total(range(2000))\n"
)
_WRITTEN = 50
# A writer like those of test runs: one transaction per measurement.
_WRITER = """
import sys
from pathlib import Path
from rlm_core.measurement import Store
from tests.rlm_core.measurement.test_store import measurement

store = Store(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    store.add([measurement(run=sys.argv[2], qualname=f"f{number}")])
"""


async def _edit(client: Client, uri: str) -> int:
    """Edit a document and ask for its hints until the task is cancelled."""
    version = 1
    while True:
        version += 1
        document = {"uri": uri, "version": version}
        text = f"{_SOURCE}\n\ndef added(n):\n    return [n] * {version}\n"
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        await client.hints(uri)


async def _measured(client: Client, uri: str) -> None:
    """Wait until the hint of a measured function says so."""
    while not any("✓" in str(hint["label"]) for hint in await client.hints(uri)):
        client.refreshed.clear()
        await client.refreshed.wait()


async def _run(folder: Path, environment: dict[str, str], *command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


async def test_servers_and_measuring_share_a_store_and_lose_nothing(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for name, text in {"shapes/__init__.py": "", "shapes/area.py": _SOURCE, "tests/test_area.py": _TESTS}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    path = project / "shapes" / "area.py"
    store = Store(home / "data" / "rlm-lsp" / "measurements.sqlite3")
    environment = {**os.environ, "XDG_DATA_HOME": str(home / "data"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    repository = Path(__file__).parents[2]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(session(folder=project, refresh=True, home=home)) for _ in range(2)]
        for client in clients:
            client.open(path.as_uri(), _SOURCE)
        editing = [asyncio.create_task(_edit(client, path.as_uri())) for client in clients]
        writers = [_run(repository, environment, "-c", _WRITER, str(store.path), name, str(_WRITTEN)) for name in "ab"]
        measure = _run(
            project, environment, "-m", "rlm_lsp", "measure", "tests", "--no-memory", "--python", sys.executable
        )
        ended = await asyncio.gather(measure, *writers)
        assert [code for code, _ in ended] == [0, 0, 0], ended
        for task in editing:
            task.cancel()
        for result in await asyncio.gather(*editing, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError), result
        runs = [one.run for one in store.all()]
        assert (runs.count("a"), runs.count("b")) == (_WRITTEN, _WRITTEN)
        assert any(one.qualname == "total" for one in store.all())
        # What is added at last is seen by both, whatever the run on a busy machine was worth.
        source = FunctionFile(path).function("total", 1)
        assert source is not None
        last = measurement(
            source_hash=source.hash,
            device=cpu_name(),
            path=str(path.resolve()),
            qualname="total",
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            text=source.measured_text,
        )
        store.add([last])
        for client in clients:
            await asyncio.wait_for(_measured(client, path.as_uri()), 30)
        for client in clients:
            assert client.log() == ""
