"""No session connects to another host or leaves files outside our folders, though the libraries that it uses would.

Each session runs in a network namespace of its own that sees every look-up and every connection, with an empty home
folder, for a user who has switched the telemetry of all libraries on. Its control is the same session with the variable
of onnxruntime taken away again: it must be seen. All sessions run at once and take as long as the longest, that of an
editor, since onnxruntime reports for the first time after about 10 s.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from rlm_core.no_telemetry import VARIABLES
from rlm_core.training.datasets.schema import write_rows

from tests.bench import lsp_stdio
from tests.paths import REPOSITORY
from tests.rlm_core.training.conftest import function_rows

pytestmark = [pytest.mark.extras, pytest.mark.timeout(600)]

EDITOR_SECONDS = 30
FIRST_WITH_TELEMETRY = Version("1.29")
INSTALLED = Version(version("onnxruntime"))
TEXT = "def f(values):\n    return sorted(values)[0]\n"
# What a session may leave below the home folder (XDG).
OURS = (".cache/rlm-lsp", ".config/rlm-lsp", ".local/share/rlm-lsp", ".local/state/rlm-lsp")
AS_USERS_DO = (sys.executable, "-m", "rlm_lsp")
WITHOUT_THE_VARIABLE = (
    sys.executable,
    "-c",
    "import os, rlm_core; del os.environ['ORT_DISABLE_TELEMETRY']\nfrom rlm_lsp.cli.app import main\nmain()",
)


@dataclass(frozen=True)
class Seen:
    """What a session did: names that were looked up, connections, and files outside our folders."""

    lookups: tuple[str, ...]
    connections: tuple[str, ...]
    files: tuple[str, ...]
    outside: tuple[str, ...]


class Room:
    """The folder of a session: an empty home, a folder for temporary files, a project, and the report."""

    def __init__(self, folder: Path, unshare: tuple[str, ...], rlm_lsp: tuple[str, ...]) -> None:
        self._folder, self._unshare, self.rlm_lsp = folder, unshare, rlm_lsp
        for name in ("home", "tmp", "project", "watch"):
            (folder / name).mkdir(parents=True)
        self.project = folder / "project"
        self.file = self.project / "a.py"
        self.file.write_text(TEXT)
        self._report = folder / "watch" / "report.jsonl"

    @property
    def environment(self) -> dict[str, str]:
        """That of a user who wants telemetry and is not in CI, where onnxruntime sends none."""
        wanted = {name: "1" if value == "0" else "0" for name, value in VARIABLES.items()}
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
        folders = {"HOME": str(self._folder / "home"), "TMPDIR": str(self._folder / "tmp"), "PYTHONPATH": path}
        return {**kept, **wanted, **folders}

    def command(self, *command: str | Path) -> list[str]:
        """A command that is watched."""
        watched = (*self._unshare, sys.executable, "-m", "tests.package.watched", self._report, "--")
        return [str(word) for word in (*watched, *command)]

    @asynccontextmanager
    async def started(self, *command: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
        """A watched command that runs, with pipes; it must end in the block."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.command(*command), env=self.environment, cwd=self.project, stdin=pipe, stdout=pipe, limit=2**26
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()

    async def run(self, *command: str | Path) -> str:
        """Run a command that must succeed; what it printed on stdout."""
        async with self.started(*command) as process:
            printed, _ = await process.communicate()
        assert process.returncode == 0
        return printed.decode()

    def seen(self) -> Seen:
        """What the watched command did; it has ended."""
        events = [json.loads(line) for line in self._report.read_text().splitlines()]
        assert events[-1] == {"status": 0}
        files = [path.relative_to(self._folder) for path in self._folder.rglob("*") if not path.is_dir()]
        left = sorted(str(path) for path in files if path.parts[0] != "watch" and path != Path("project/a.py"))
        return Seen(
            tuple(event["lookup"] for event in events if "lookup" in event),
            tuple(f"{event['connection']} {event['port']}" for event in events if "connection" in event),
            tuple(left),
            tuple(path for path in left if not path.startswith(tuple(f"home/{ours}/" for ours in OURS))),
        )


async def _editor(room: Room) -> None:
    """An editor with one file, which is edited and hovered over every few seconds for half a minute."""
    command = room.command(*room.rlm_lsp, "serve", "--stdio")
    uri = room.file.as_uri()
    async with (
        asyncio.timeout(EDITOR_SECONDS + 480),
        lsp_stdio.session(room.project.as_uri(), command=command, environment=room.environment) as client,
    ):
        end = asyncio.get_running_loop().time() + EDITOR_SECONDS
        client.open(uri, TEXT)
        for edit in count(2):
            while not await client.hints(uri):
                client.refreshed.clear()
                await client.refreshed.wait()
            hover = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 4}}
            assert (await client.request("textDocument/hover", hover))["contents"]
            rest = end - asyncio.get_running_loop().time()
            if rest <= 0:
                return
            await asyncio.sleep(min(rest, 5))
            client.edit(uri, edit, 1, 11, 11, "1 + ")


async def _predict(room: Room) -> None:
    assert json.loads(await room.run(*room.rlm_lsp, "predict", room.project, "--format", "json"))


async def _tune(room: Room) -> None:
    rows = [{**row, "value": row["value"] * 3} for row in function_rows(60)]
    write_rows(rows, data := room.project.parent / "watch" / "team.parquet")
    printed = await room.run(*room.rlm_lsp, "tune", "--data", data, "--name", "ours")
    assert "rlm-lsp model use ours" in printed


async def _serve_model(room: Room) -> None:
    assert json.loads(await room.run(sys.executable, "-m", "tests.package.ask_served", room.file, *room.rlm_lsp))


async def _mcp(room: Room) -> None:
    # The client of the SDK would kill a server, and its watch, that takes more than two seconds to end.
    async with room.started(*room.rlm_lsp, "mcp") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        call = {"name": "predict", "arguments": {"path": str(room.file)}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        answer: dict[str, Any] = {}
        while answer.get("id") != 2:
            answer = json.loads(await server.stdout.readline())
        assert not answer["result"].get("isError"), answer
        server.stdin.close()
        assert await server.wait() == 0


SESSIONS: Mapping[str, Callable[[Room], Awaitable[None]]] = {
    "editor": _editor,
    "predict": _predict,
    "tune": _tune,
    "serve-model": _serve_model,
    "mcp": _mcp,
}
CONTROLLED = tuple(name for name in SESSIONS if name != "tune")  # which takes ten times as long as the others
Outcome = Callable[[str, str], Seen]


@pytest.fixture(scope="module")
def unshare() -> tuple[str, ...]:
    """The command that enters new namespaces, which needs root or a kernel that allows them to every user."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("nothing was proved: there are no network namespaces here, or no `unshare` to make them")
    said = ""
    for more in ((), ("--map-root-user",)):
        command = ("unshare", *more, "--net", "--mount")
        done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return command
        said = done.stderr.strip()
    pytest.skip(f"nothing was proved: network namespaces are not allowed here ({said})")


@pytest.fixture(scope="module")
def outcome(unshare: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What was seen of a session; all of them have run, and their controls where onnxruntime has telemetry."""
    kinds = {(name, "session"): AS_USERS_DO for name in SESSIONS}
    if INSTALLED >= FIRST_WITH_TELEMETRY:
        kinds |= {(name, "control"): WITHOUT_THE_VARIABLE for name in CONTROLLED}
    rooms = {
        (name, kind): Room(tmp_path_factory.mktemp(f"{kind}-{name}"), unshare, rlm_lsp)
        for (name, kind), rlm_lsp in kinds.items()
    }

    async def run() -> dict[tuple[str, str], Any]:
        done = await asyncio.gather(
            *(SESSIONS[name](room) for (name, _), room in rooms.items()), return_exceptions=True
        )
        return dict(zip(rooms, done, strict=True))

    errors = asyncio.run(run())

    def seen(name: str, kind: str) -> Seen:
        if (error := errors[name, kind]) is not None:
            raise error
        return rooms[name, kind].seen()

    return seen


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_connects_to_no_host_and_writes_files_only_in_our_folders(name: str, outcome: Outcome) -> None:
    seen = outcome(name, "session")
    to_itself = [one for one in seen.connections if name == "serve-model" and one.startswith("tcp 127.0.0.1 ")]
    assert (seen.lookups, list(seen.connections), seen.outside) == ((), to_itself, ())
    # What the user asked for is there all the same, and connections are seen.
    assert bool(to_itself) == (name == "serve-model")
    assert any("rlm-lsp/models/ours" in path for path in seen.files) == (name == "tune")


@pytest.mark.skipif(
    INSTALLED < FIRST_WITH_TELEMETRY,
    reason=f"nothing was proved: onnxruntime {INSTALLED} has no telemetry yet, {FIRST_WITH_TELEMETRY} is the first",
)
@pytest.mark.parametrize("name", CONTROLLED)
def test_the_same_session_without_the_variable_is_seen(name: str, outcome: Outcome) -> None:
    seen = outcome(name, "control")
    assert any(path.endswith("/.onnxruntime/deviceid") for path in seen.outside), seen
    if name == "editor":
        assert any(lookup.endswith(".microsoft.com") for lookup in seen.lookups), seen
        assert any(one.startswith("tcp 127.0.0.2 ") for one in seen.connections), seen


def test_no_newer_onnxruntime_is_allowed_than_the_one_that_these_tests_have_seen() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    [allowed] = [one for text in project["dependencies"] if (one := Requirement(text)).name == "onnxruntime"]
    [below] = [one.version for one in allowed.specifier if one.operator == "<"]
    assert below == f"{INSTALLED.major}.{INSTALLED.minor + 1}", (
        "install the newest that pyproject.toml allows, then test"
    )
