"""``rlm-lsp serve`` and ``mcp`` as forks of a process that has imported them: imports take longer than most tests do.

The server is a process with the client's pipes, environment and folder, and its exit status is passed on; only its
imports are done before. Tests about starting and ending start the command itself.

As a program, ``warm_server.py SOCKET ARGUMENTS`` asks for such a server and becomes its stand-in: the client started
this process, and sees it end as the server ends. It imports little, as it runs once per server.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

COLD: tuple[str, ...] = (sys.executable, "-m", "rlm_lsp")

_LIBRARIES = (
    *("rlm_lsp.cli.serve", "rlm_lsp.mcp.server", "numpy", "onnxruntime"),
    *("rlm_core.loading", "rlm_core.inference.student"),
)
_FORK = "import sys; from tests.warm_server import fork_servers; fork_servers(int(sys.argv[1]))"
_STREAMS = (0, 1, 2)


@cache
def warm_command() -> tuple[str, ...]:
    """The start of a command line of ``rlm-lsp``, which runs in a fork of a process that ends with this one."""
    if not hasattr(os, "fork"):
        return COLD
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(_warm_server(Path(__file__).parents[1]))


@contextmanager
def _warm_server(folder: Path) -> Iterator[tuple[str, ...]]:
    """The command that runs in a fork; ``folder`` is the repository."""
    with tempfile.TemporaryDirectory(prefix="rlm-") as scratch, socket.socket(socket.AF_UNIX) as listener:
        path = f"{scratch}/server"
        listener.bind(path)
        listener.listen(16)
        command = [sys.executable, "-c", _FORK, str(listener.fileno())]
        # It ends when its standard input does, so also if this process is killed.
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, pass_fds=[listener.fileno()]):
            yield (sys.executable, "-I", "-S", __file__, path)


def fork_servers(descriptor: int) -> None:
    """Fork a server for each connection to the listening socket, until standard input ends."""
    for name in _LIBRARIES:
        __import__(name)
    if sys.platform == "linux":
        assert len([*Path("/proc/self/task").iterdir()]) == 1, "a fork has one thread only"
    children: list[int] = []
    listener = socket.socket(fileno=descriptor)
    inputs: list[socket.socket | int] = [listener, 0]
    while 0 not in select.select(inputs, [], [])[0]:
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
        connection, _ = listener.accept()
        if (child := os.fork()) == 0:
            listener.close()
            _run_server(connection)
        children.append(child)
        connection.close()


def _run_server(connection: socket.socket) -> None:
    """Run one server in a child of this process, and report how it ended."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, len(_STREAMS))
    order = json.loads(b"".join(iter(lambda: connection.recv(2**16), b"")))
    server = os.fork()
    if server != 0:
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])).encode())
        os._exit(0)
    connection.close()
    for stream, descriptor in zip(_STREAMS, descriptors, strict=True):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 # until it ends
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["rlm-lsp", *order["arguments"]]
    from rlm_lsp.cli.app import main

    main()
    sys.exit()


def _stand_in(path: str, arguments: list[str]) -> int:
    order = {"environment": dict(os.environ), "folder": str(Path.cwd()), "arguments": arguments}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"\0"], _STREAMS)
        connection.sendall(json.dumps(order).encode())
        connection.shutdown(socket.SHUT_WR)
        for stream in _STREAMS:
            os.close(stream)
        status = int(connection.recv(16) or 1)
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    os._exit(_stand_in(sys.argv[1], sys.argv[2:]))
