"""One command in a sandbox: limits in, what it took or why it failed out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

_INSIDE = Path(__file__).parent / "injected" / "rlm_run.py"
_POLL_SECONDS, _GRACE_SECONDS = 0.1, 20.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of wall time, bytes of memory and number of processes of all together, bytes of a file."""

    seconds: float = 10.0
    memory: int = 2048 * _MIB
    processes: int = 64
    files: int = 256 * _MIB

    def __str__(self) -> str:
        memory, files = (f"{value // _MIB:,} MiB" for value in (self.memory, self.files))
        return f"{self.seconds:g} s, {memory} of memory, {self.processes} processes, {files} a file"


COMPILING = Limits(300.0, 6144 * _MIB, 512, 1024 * _MIB)


@dataclass(frozen=True, slots=True)
class Task:
    """A command and what it may see: ``readable`` folders and the ``build`` folder, ``writable`` while compiling."""

    command: Sequence[str]
    environment: dict[str, str]
    readable: Sequence[Path]
    build: Path
    limits: Limits
    stdin: Path | None = None
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command took: wall seconds, peak bytes of its largest process; ``failed`` says why it does not count."""

    seconds: float = 0.0
    peak_bytes: int = 0
    failed: str = ""
    network_is_cut: bool = False


class Sandbox(Protocol):
    """What commands are shut in."""

    name: str
    told: str
    is_own_world: bool  # with no network and no other processes

    def start(self, inner: Sequence[str], task: Task, **popen: Any) -> subprocess.Popen[bytes]:
        """Start the measuring process ``inner`` in the sandbox."""
        ...

    def close(self) -> None:
        """Remove what a command has left behind."""
        ...


def inside() -> tuple[list[str], list[Path]]:
    """What starts the measuring process, and the folders that it needs to see."""
    python = Path(sys.executable).resolve()
    return [str(python), "-I", "-S", str(_INSIDE)], [Path(sys.base_prefix), python.parent, _INSIDE.parent]


def execute(sandbox: Sandbox, task: Task, came: Sequence[int]) -> Outcome:
    """Run a command once; a signal in ``came`` ends it.

    Raises:
        KeyboardInterrupt: such a signal has come.
    """
    order = {
        "command": list(task.command),
        "limits": asdict(task.limits),
        "tasks": _tasks() + 256,
        "cut_network": not sandbox.is_own_world,
        "alone": sandbox.is_own_world,
    }
    starts, _ = inside()
    try:
        with Path(task.stdin or os.devnull).open("rb") as stdin:
            process = sandbox.start(
                [*starts, json.dumps(order)],
                task,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except OSError as error:
        sandbox.close()
        return Outcome(failed=f"cannot be started ({error})")
    try:
        told, errors = _wait(process, task.limits.seconds + _GRACE_SECONDS, came)
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        sandbox.close()
    return _outcome(told, errors, task.limits)


def _wait(process: subprocess.Popen[bytes], seconds: float, came: Sequence[int]) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if came:
            raise KeyboardInterrupt
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_SECONDS)
    return b"", b"what measures it did not answer"


def _outcome(told: bytes, errors: bytes, limits: Limits) -> Outcome:
    try:
        result = json.loads(told)
    except ValueError:
        return Outcome(failed=f"what measures it was ended{_last_line(errors.decode('utf-8', 'replace'))}")
    return Outcome(result["seconds"], result["peak_bytes"], _why(result, limits), result["network_is_cut"])


def _why(result: dict[str, Any], limits: Limits) -> str:
    """Why a run does not count; empty if it does."""
    words = {
        "time": f"not done within {limits.seconds:g} s",
        "memory": f"took more than {limits.memory / _MIB:,.0f} MiB",
        "processes": f"had more than {limits.processes} processes at once",
    }
    if result["stopped"]:
        return words[result["stopped"]]
    code = os.waitstatus_to_exitcode(result["status"])
    if code == -signal.SIGXFSZ:
        return f"wrote a file of more than {limits.files / _MIB:,.0f} MiB"
    if code == 0:
        return ""
    how = f"ended by {_signal_name(-code)}" if code < 0 else f"exit status {code}"
    return how + _last_line(result["stderr"])


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def _tasks() -> int:
    """The threads of this user, which a limit of processes counts too."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == os.getuid():
                    count += sum(1 for _ in (entry / "task").iterdir())
    return count
