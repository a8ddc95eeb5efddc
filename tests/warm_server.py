"""Python programs as forks of a process that has imported their libraries, which takes longer than most tests do.

A program is a process with its caller's pipes, environment and folder, and its exit status is passed on; only its
imports are done before. Tests about starting and ending start the interpreter itself.

As a program, ``warm_server.py SOCKET ARGUMENTS`` asks for such a process and becomes its stand-in: the caller started
this process, and sees it end as the program ends; a program whose stand-in is killed is terminated. It imports little,
as it runs once per program. Arguments are those of an interpreter: ``[-P] -m MODULE ...`` or ``FILE ...``.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

MODULE = ("-m", "rlm_lsp")
COLD: tuple[str, ...] = (sys.executable, *MODULE)

_BASE = ("rlm_lsp.cli.serve", "numpy", "onnxruntime", "rlm_core.loading", "rlm_core.inference.student")
_SERVER = (*_BASE, "rlm_lsp.mcp.server")
_TRAINING = (
    *("torch.distributed.run", "torch.distributed.fsdp", "accelerate.commands.launch", "sklearn"),
    *("rlm_lsp.cli.app", "rlm_core.training.full.train", "rlm_core.training.tuning.full"),
)
_FORK = "import sys; from tests.warm_server import fork_programs; fork_programs(int(sys.argv[1]), sys.argv[2:])"
_STREAMS = (0, 1, 2)
_TERMINATE = 5.0  # seconds before a program that does not end is killed


def warm_command() -> tuple[str, ...]:
    """The start of a command line of ``rlm-lsp``, which runs in a fork of a process that ends with this one."""
    return (_warm_python(_SERVER), *MODULE)


def warm_base() -> tuple[str, ...]:
    """Like :func:`warm_command`, of a process that has imported nothing that the base install lacks."""
    return (_warm_python(_BASE), *MODULE)


def warm_training() -> str:
    """The path of an interpreter that has imported what training a full model needs."""
    return _warm_python(_TRAINING)


@cache
def _warm_python(libraries: tuple[str, ...]) -> str:
    if not hasattr(os, "fork"):
        return sys.executable
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(_warm_server(Path(__file__).parents[1], libraries))


@contextmanager
def _warm_server(folder: Path, libraries: tuple[str, ...]) -> Iterator[str]:
    """The path of the interpreter that is a fork; ``folder`` is the repository."""
    with tempfile.TemporaryDirectory(prefix="rlm-") as scratch, socket.socket(socket.AF_UNIX) as listener:
        path = f"{scratch}/server"
        listener.bind(path)
        listener.listen(16)
        command = [sys.executable, "-c", _FORK, str(listener.fileno()), *libraries]
        alone = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **alone}  # with threads, it could not be forked
        pipe, descriptors = subprocess.PIPE, [listener.fileno()]
        # It ends when its standard input does, so also if this process is killed.
        with subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, pass_fds=descriptors):
            # If the server ends too early, connecting must fail.
            listener.close()
            interpreter = Path(scratch, "python")
            interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{__file__}" "{path}" "$@"\n')
            interpreter.chmod(0o755)
            yield str(interpreter)


def fork_programs(descriptor: int, libraries: list[str]) -> None:
    """Fork a program for each connection to the listening socket, until standard input ends."""
    for name in libraries:
        __import__(name)
    # What is imported is never garbage: a program that looked for it would copy the memory that it shares.
    gc.freeze()
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
            _run_program(connection)
        children.append(child)
        connection.close()


def _run_program(connection: socket.socket) -> None:
    """Run one program in a child of this process, and report how it ended."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, len(_STREAMS))
    with connection.makefile("rb") as lines:
        order = json.loads(lines.readline())
    program = os.fork()
    if program != 0:
        for descriptor in descriptors:
            os.close(descriptor)
        status = _status(program, connection)
        with suppress(OSError):  # its stand-in was killed
            connection.sendall(str(status).encode())
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
    _end(_run(order["arguments"]))


def _run(arguments: list[str]) -> int:
    """Run a program as an interpreter does; its exit status."""
    import runpy

    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    if any(Path(path, "sitecustomize.py").exists() for path in paths if path):
        sys.modules.pop("sitecustomize", None)
        __import__("sitecustomize")
    try:
        match arguments:
            case ["-m", module, *rest] | ["-P", "-m", module, *rest]:
                sys.argv = [module, *rest]
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            case [file, *rest]:
                sys.argv = [file, *rest]
                runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end(status: int) -> NoReturn:
    """End as an interpreter does, but for the objects: to free those of all imports takes longer than most programs."""
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _status(program: int, connection: socket.socket) -> int:
    """Wait for a program, which is terminated if its stand-in is killed; its exit status."""
    if hasattr(os, "pidfd_open"):
        end = os.pidfd_open(program)
        watched: list[int | socket.socket] = [end, connection]
        if end not in select.select(watched, [], [])[0]:
            os.kill(program, signal.SIGTERM)
            if not select.select([end], [], [], _TERMINATE)[0]:
                os.kill(program, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])


def _stand_in(path: str, arguments: list[str]) -> int:
    order = {"environment": dict(os.environ), "folder": str(Path.cwd()), "arguments": arguments}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [b"\0"], _STREAMS)
        connection.sendall(json.dumps(order).encode() + b"\n")
        for stream in _STREAMS:
            os.close(stream)
        status = int(connection.recv(16) or 1)
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    os._exit(_stand_in(sys.argv[1], sys.argv[2:]))
