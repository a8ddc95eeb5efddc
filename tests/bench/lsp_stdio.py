"""A small client over stdio for timing: messages as they are, no model of the protocol in between."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

COMMAND = (sys.executable, "-m", "rlm_lsp", "serve", "--stdio")
Json = dict[str, Any]


class AnswerError(RuntimeError):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.code = error["code"]


class Client:
    """A session with a server that was started for it; answers the server's own requests at once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self.refreshed = asyncio.Event()
        self.published: list[tuple[float, Json]] = []
        self.messages: list[Json] = []  # those that the server logged or showed
        self._reader = asyncio.create_task(self._read())

    def notify(self, method: str, params: Json) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def request(self, method: str, params: Json | None) -> Any:
        """Send a request and wait for its result."""
        self._count += 1
        self._waiting[self._count] = future = asyncio.get_running_loop().create_future()
        self._send({"id": self._count, "method": method, "params": params})
        return await asyncio.wait_for(future, 120)

    async def hints(self, uri: str, first: int = 0, last: int = 1_000_000) -> list[Json]:
        """The hints of some lines."""
        place = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
        return list(await self.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": place}) or [])

    def open(self, uri: str, text: str) -> None:
        """Open a Python document."""
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def edit(self, uri: str, version: int, line: int, start: int, end: int, text: str) -> None:
        """Replace a part of a line."""
        place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        document = {"uri": uri, "version": version}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": place, "text": text}]}
        )

    def resident(self) -> int:
        """Bytes of memory that the server holds now (Linux)."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def peak(self) -> int:
        """The most bytes of memory that the server has held (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) * 1024

    def processor_seconds(self) -> float:
        """The processor time of all threads of the server (Linux)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        while True:
            length = 0
            while (line := await self._stdout.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self._handle(json.loads(await self._stdout.readexactly(length)))

    def _handle(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            future = self._waiting.pop(message["id"])
            if "error" in message:
                future.set_exception(AnswerError(message["error"]))
            elif not future.done():
                future.set_result(message.get("result"))
            return
        if method == "workspace/inlayHint/refresh":
            self.refreshed.set()
        if method in ("window/logMessage", "window/showMessage"):
            self.messages.append(message["params"])
        if method == "textDocument/publishDiagnostics":
            self.published.append((time.perf_counter(), message["params"]))
        if "id" in message:
            items = message.get("params", {}) or {}
            result = [None] * len(items.get("items", [])) if method == "workspace/configuration" else None
            self._send({"id": message["id"], "result": result})


@asynccontextmanager
async def session(
    folder_uri: str | None = None,
    errors: IO[bytes] | None = None,
    command: Sequence[str | Path] = COMMAND,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """A server as an editor starts it, initialized; it ends with the block. ``errors`` receives its stderr."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=errors, limit=2**26, env=environment
    )
    client = Client(process)
    capabilities = {
        "workspace": {"inlayHint": {"refreshSupport": True}},
        "textDocument": {
            "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
            "publishDiagnostics": {"versionSupport": True},
        },
        "general": {"positionEncodings": ["utf-16"]},
    }
    folders = [{"uri": folder_uri, "name": "bench"}] if folder_uri else None
    params = {"processId": None, "rootUri": folder_uri, "capabilities": capabilities, "workspaceFolders": folders}
    # By default only some functions have a hint; the bench waits for that of any function.
    await client.request("initialize", {**params, "initializationOptions": {"hintsShown": "all", **options}})
    client.notify("initialized", {})
    try:
        yield client
        await client.request("shutdown", None)
        client.notify("exit", {})
        await asyncio.wait_for(process.wait(), 30)
    finally:
        client._reader.cancel()
        if process.returncode is None:
            process.kill()
