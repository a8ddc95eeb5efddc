"""A client over stdio that sends anything, also what is no message, and keeps every answer by its id."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "rlm_lsp", "serve", "--stdio")
EVERYWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 10_000_000, "character": 0}}
PATIENCE = 60.0  # seconds until a test fails for want of an answer
_END_SECONDS = 30
Json = dict[str, Any]


class Client:
    """A connection to a server that was started for it; answers the server's own requests at once."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._stdin, self._stdout, self._log = process, process.stdin, process.stdout, log
        self._count = 0
        self._waiting: dict[str | int, asyncio.Future[Json]] = {}
        # Every answer, also a second one to the same request; those to unreadable messages have the id None.
        self.answers: defaultdict[str | int | None, list[Json]] = defaultdict(list)
        self.notifications: list[Json] = []
        self.other_waits: list[float] = []  # seconds, of requests about a document that is not the one under test
        self.answered, self.refreshed = asyncio.Event(), asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._stdin.write(data)

    def send(self, message: object) -> None:
        """Send any JSON value with a header."""
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object, number: str | int | None = None) -> asyncio.Future[Json]:
        """Send a request; the future is the whole answer, also one with an error."""
        if number is None:
            self._count += 1
            number = f"good {self._count}"
        self._waiting[number] = future = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    async def request(self, method: str, params: object) -> Any:
        """Send a request and wait for its result.

        Raises:
            RuntimeError: the answer is an error.
        """
        answer = await asyncio.wait_for(self.ask(method, params), PATIENCE)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result")

    async def hints(self, uri: str, first: int = 0, last: int = 10_000_000) -> list[Json]:
        """The hints of some lines of a document."""
        place = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
        return (await self.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": place})) or []

    def open(self, uri: str, text: str, language: str = "python") -> None:
        """Open a document."""
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def close(self, uri: str) -> None:
        """Close a document."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def drain(self) -> None:
        """Wait until the pipe has room."""
        await self._stdin.drain()

    async def responds(self) -> float:
        """The seconds until a request about no document is answered."""
        start = time.perf_counter()
        await self.request(
            "textDocument/hover",
            {"textDocument": {"uri": "untitled:none"}, "position": {"line": 0, "character": 0}},
        )
        return time.perf_counter() - start

    def resident(self) -> int:
        """Bytes of memory that the server holds now (Linux)."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def peak(self) -> int:
        """The most bytes of memory that the server has held (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) * 1024

    def log(self) -> str:
        """What the server has written to stderr."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def _read(self) -> None:
        while True:
            length = 0
            while (line := await self._stdout.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(ConnectionError("the server has ended"))
                return
            self._handle(json.loads(await self._stdout.readexactly(length)))

    def _handle(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            number = message.get("id")
            self.answers[number].append(message)
            self.answered.set()
            future = self._waiting.pop(number, None) if number is not None else None
            if future is not None and not future.done():
                future.set_result(message)
            return
        if method == "workspace/inlayHint/refresh":
            self.refreshed.set()
        if "id" in message:
            items = message.get("params", {}) or {}
            result = [None] * len(items.get("items", [])) if method == "workspace/configuration" else None
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        else:
            self.notifications.append(message)


def initialization(
    encoding: str = "utf-16", folder: Path | None = None, *, refresh: bool = False, **options: Any
) -> Json:
    """The parameters of ``initialize``; all hints are shown, and the model does not wait for a pause in typing."""
    capabilities = {
        "workspace": {"inlayHint": {"refreshSupport": refresh}},
        "textDocument": {"hover": {"contentFormat": ["markdown"]}, "diagnostic": {}},
        "general": {"positionEncodings": [encoding]},
    }
    uri = folder.as_uri() if folder is not None else None
    return {
        "processId": os.getpid(),
        "rootUri": uri,
        "capabilities": capabilities,
        "workspaceFolders": [{"uri": uri, "name": "folder"}] if uri is not None else None,
        "initializationOptions": {"hintsShown": "all", "debounceMs": 0, **options},
    }


@asynccontextmanager
async def started(command: Sequence[str] = COMMAND, home: Path | None = None) -> AsyncIterator[Client]:
    """A server that was not initialized; it is killed at the end of the block if it still runs.

    Its data are below ``home``, which several servers may share.
    """
    with tempfile.TemporaryDirectory(prefix="rlm-lsp-reliability-") as folder:
        log = Path(folder, "stderr")
        # What the user of this machine has measured must not change an answer.
        own = {f"XDG_{name}_HOME": f"{home or folder}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA", "STATE")}
        pipe = asyncio.subprocess.PIPE
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=errors, limit=2**28, env={**os.environ, **own}
            )
        client = Client(process, log)
        try:
            yield client
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            client._reader.cancel()


@asynccontextmanager
async def session(
    encoding: str = "utf-16",
    folder: Path | None = None,
    *,
    refresh: bool = False,
    home: Path | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """An initialized server whose model is loaded; it ends in order."""
    async with started(home=home) as client:
        await client.request("initialize", initialization(encoding, folder, refresh=refresh, **options))
        client.notify("initialized", {})
        client.open("untitled:first", "def f(n):\n    return n\n")
        await client.request(
            "workspace/executeCommand", {"command": "rlm-lsp.predictFile", "arguments": ["untitled:first"]}
        )
        client.close("untitled:first")
        yield client
        await client.request("shutdown", None)
        client.notify("exit", None)
        await asyncio.wait_for(client.process.wait(), _END_SECONDS)
