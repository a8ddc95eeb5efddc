"""Runs between an editor and ``rlm-lsp serve`` and stores the capabilities that the editor sends in ``initialize``.

``python tests/editors/record_capabilities.py FILE serve``, where an editor would start ``rlm-lsp serve``: writes the
client's name, version and capabilities to FILE as JSON, and otherwise is the server. Other arguments than ``serve``
are passed on. Process ids, folders and the names of machines are not kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

STDIN = 0
CHUNK = 1 << 16
KEPT = ("clientInfo", "capabilities")


def read_message(fd: int) -> tuple[bytes, bytes]:
    """The header and the body of the next message, and not a byte more; empty at the end of the input."""
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        byte = os.read(fd, 1)
        if not byte:
            return header, b""
        header += byte
    fields = dict(line.split(b":", 1) for line in header.strip().split(b"\r\n"))
    left, body = int(fields[b"Content-Length"]), b""
    while left and (chunk := os.read(fd, left)):
        body += chunk
        left -= len(chunk)
    return header, body


def record(body: bytes, file: Path) -> None:
    """Store the client data of an ``initialize`` request; ignore other messages."""
    message = json.loads(body)
    if message.get("method") == "initialize":
        kept = {name: message["params"][name] for name in KEPT if name in message["params"]}
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        partial.replace(file)


def pass_on(fd: int, sink: IO[bytes]) -> None:
    """Hand all further input to the server, and its end too."""
    try:
        while chunk := os.read(fd, CHUNK):
            sink.write(chunk)
            sink.flush()
    except BrokenPipeError:
        return
    sink.close()


def main(arguments: Sequence[str]) -> int:
    """Be ``rlm-lsp`` with these arguments, the first of which is the file to write."""
    file, *rest = arguments
    command = [sys.executable, "-m", "rlm_lsp", *rest]
    if rest[:1] != ["serve"]:
        return subprocess.run(command, check=False).returncode
    header, body = read_message(STDIN)
    if body:
        record(body, Path(file))
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
        assert server.stdin is not None
        server.stdin.write(header + body)
        server.stdin.flush()
        # A daemon: the server may end while the editor still keeps our input open.
        threading.Thread(target=pass_on, args=(STDIN, server.stdin), daemon=True).start()
        status = server.wait()
        # What is left of the input has no reader; leaving the block would wait for the thread's lock on the pipe.
        os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
