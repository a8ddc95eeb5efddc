"""One command in a sandbox (bubblewrap, or limits alone): what it took, or why it failed."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from rlm_core.errors import DataError
from rlm_core.folders import ScratchFolder
from rlm_core.processes import end_group, exit_reason, find_program, last_line

_INSIDE = Path(__file__).parent / "injected" / "rlm_run.py"
_POLL_SECONDS, _GRACE_SECONDS, _END_SECONDS = 0.1, 20.0, 10.0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Seconds of wall time, bytes of memory and number of processes of all together, bytes of a file."""

    seconds: float = 10.0
    memory: int = 2048 * _MIB
    processes: int = 64
    files: int = 256 * _MIB

    def __str__(self) -> str:
        memory, files = (f"{value // _MIB:,} MiB" for value in (self.memory, self.files))
        return f"{self.seconds:g} s, {memory} of memory, {self.processes} processes, {files} per file"


COMPILING = ProgramLimits(300.0, 6144 * _MIB, 512, 1024 * _MIB)


@dataclass(frozen=True, slots=True)
class SandboxTask:
    """A command and what it may see: ``readable`` folders and the ``build`` folder, ``writable`` while compiling."""

    command: Sequence[str]
    environment: dict[str, str]
    readable: Sequence[Path]
    build: Path
    limits: ProgramLimits
    stdin: Path | None = None
    writable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxOutcome:
    """The cost of a command: wall seconds, peak bytes of its largest process; ``failed`` says why it does not count."""

    seconds: float = 0.0
    peak_bytes: int = 0
    failed: str = ""
    network_is_cut: bool = False


class Sandbox(Protocol):
    """A sandbox in which commands run."""

    name: str
    description: str
    is_own_world: bool  # with no network and no other processes

    def start(self, inner: Sequence[str], task: SandboxTask, **popen: Any) -> subprocess.Popen[bytes]:
        """Start the measuring process ``inner`` in the sandbox."""
        ...

    def close(self) -> None:
        """Remove what a command has left behind."""
        ...


def inside() -> tuple[list[str], list[Path]]:
    """Return the command of the measuring process, and the folders that it needs to see."""
    python = Path(sys.executable).resolve()
    return [str(python), "-I", "-S", str(_INSIDE)], [Path(sys.base_prefix), python.parent, _INSIDE.parent]


def execute(sandbox: Sandbox, task: SandboxTask, came: Sequence[int]) -> SandboxOutcome:
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
        return SandboxOutcome(failed=f"cannot be started ({error})")
    try:
        output, errors = _wait(process, task.limits.seconds + _GRACE_SECONDS, came)
    finally:
        end_group(process)
        sandbox.close()
    return _outcome(output, errors, task.limits)


def _wait(process: subprocess.Popen[bytes], seconds: float, came: Sequence[int]) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if came:
            raise KeyboardInterrupt
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_SECONDS)
    return b"", b"what measures it did not answer"


def _outcome(output: bytes, errors: bytes, limits: ProgramLimits) -> SandboxOutcome:
    try:
        result = json.loads(output)
    except ValueError:
        return SandboxOutcome(failed=f"what measures it was ended{last_line(errors.decode('utf-8', 'replace'))}")
    return SandboxOutcome(result["seconds"], result["peak_bytes"], _why(result, limits), result["network_is_cut"])


def _why(result: dict[str, Any], limits: ProgramLimits) -> str:
    """Return why a run does not count; empty if it does."""
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
    return exit_reason(code, result["stderr"])


def _tasks() -> int:
    """The threads of this user, which a limit of processes counts too."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == os.getuid():
                    count += sum(1 for _ in (entry / "task").iterdir())
    return count


Choice = Literal["bubblewrap", "limits"]
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu")
# Of /etc what toolchains read: which alternative is chosen, and their own configuration.
_ETC = ("alternatives", "ld.so.*", "localtime", "java*", "php*", "mono", "dotnet", "scala*", "passwd", "group")
_HOME = "/tmp/home"  # noqa: S108 (a folder of the sandbox's own)
_ROOM = 16 << 20
_TRY = ProgramLimits(seconds=20.0)


def find_sandbox(choice: Choice) -> Sandbox:
    """The sandbox that was chosen.

    Raises:
        DataError: it does not work here.
    """
    if not Path("/proc/self/stat").exists():
        raise DataError("programs are measured on Linux only; use a Linux machine or container")
    if choice == "limits":
        limits = LimitsOnly()
        if failed := _try(limits):
            raise DataError(f"programs cannot be run under limits here: {failed}")
        return limits
    program = find_program("bwrap")
    bubble = Bubblewrap(program or "")
    if failed := _try(bubble) if program is not None else "bwrap is not installed":
        raise DataError(
            f"no sandbox works here ({failed}); install bubblewrap, or run programs that you trust with"
            " --sandbox limits, where they can read and write what you can"
        )
    return bubble


def _try(sandbox: Sandbox) -> str:
    """Return why a sandbox does not work; empty if it does."""
    with ScratchFolder() as build:
        outcome = execute(sandbox, SandboxTask(["/bin/sh", "-c", "exit 0"], {}, [], build, _TRY), [])
    if isinstance(sandbox, LimitsOnly):
        sandbox.describe(network_is_cut=outcome.network_is_cut)
    return outcome.failed


class Bubblewrap:
    """A view of the machine without network, home and other processes; only a scratch folder in memory is writable."""

    name = "bubblewrap"
    description = (
        "bubblewrap: no network, no other processes, no home folder; system, toolchain and programs read-only;"
        " files go to a scratch folder in memory"
    )
    is_own_world = True

    def __init__(self, program: str) -> None:
        self._program = program
        self._first: int | None = None  # a file descriptor of the sandbox's first process

    def start(self, inner: Sequence[str], task: SandboxTask, **popen: Any) -> subprocess.Popen[bytes]:
        """See :class:`Sandbox`."""
        # What measures runs before all others and gives this right up for the program.
        rights = ["--cap-add", "CAP_SYS_NICE", "--cap-add", "CAP_SETPCAP"] if os.geteuid() == 0 else []
        options = [*_OPTIONS, *rights, *_system(), "--proc", "/proc", "--dev", "/dev"]
        for place in ("/tmp", "/dev/shm"):  # noqa: S108
            # A file reaches its own limit before the folder is full.
            options += ["--size", str(2 * task.limits.files + _ROOM), "--tmpfs", place]
        _, own = inside()
        for folder in dict.fromkeys([*own, *task.readable]):
            if not _is_system(folder):
                options += ["--ro-bind", str(folder), str(folder)]
        options += ["--bind" if task.writable else "--ro-bind", str(task.build), str(task.build)]
        options += ["--dir", _HOME, "--remount-ro", "/", "--remount-ro", "/dev", "--chdir", _HOME]
        for name, value in {"HOME": _HOME, "TMPDIR": "/tmp", "LC_ALL": "C.UTF-8", **task.environment}.items():  # noqa: S108
            options += ["--setenv", name, value]
        reading, writing = os.pipe()
        try:
            command = [self._program, *options, "--info-fd", str(writing), "--", *inner]
            process = subprocess.Popen(command, pass_fds=(writing,), **popen)
        finally:
            os.close(writing)
            with os.fdopen(reading, "rb") as info:
                said = info.read()
        # It says nothing where it does not start.
        with suppress(ValueError, KeyError, OSError):
            self._first = os.pidfd_open(json.loads(said)["child-pid"])
        return process

    def close(self) -> None:
        """Wait until all processes of the sandbox have ended: the kernel kills them once the first one has ended."""
        if self._first is not None:
            select.select([self._first], [], [], _END_SECONDS)
            os.close(self._first)
            self._first = None


class LimitsOnly:
    """Limits on time, memory, processes and files, in a scratch folder; no network where the kernel allows that.

    Files are as open to the program as to the user.
    """

    name = "limits"
    description = ""
    is_own_world = False

    def __init__(self) -> None:
        self._scratch: ScratchFolder | None = None
        self._mark = ""

    def describe(self, *, network_is_cut: bool) -> None:
        """Say what was seen of it."""
        network = "no network" if network_is_cut else "WITH the network"
        self.description = f"limits alone: {network}; programs can read and write what you can"

    def start(self, inner: Sequence[str], task: SandboxTask, **popen: Any) -> subprocess.Popen[bytes]:
        """See :class:`Sandbox`."""
        self._scratch = ScratchFolder()
        home = str(self._scratch.path)
        self._mark = secrets.token_hex(16)
        environment = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", **task.environment}
        environment[_MARK] = self._mark
        return subprocess.Popen(inner, cwd=home, env=environment, **popen)

    def close(self) -> None:
        """See :class:`Sandbox`."""
        if self._mark:
            _end_marked(self._mark)
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


_MARK = "RLM_LSP_SANDBOX"  # in the environment of all processes of a run without bubblewrap
_END_ROUNDS = 100


def _end_marked(mark: str) -> None:
    """Kill all processes that were started with a mark.

    What measures a program ends what that leaves behind; but the program may kill what measures it, or be alone for
    another reason, and leads a separate session.
    """
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_END_ROUNDS):
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                # A process that has ended has an empty environment.
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


_OPTIONS = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")


def _system() -> Iterator[str]:
    """The folders of the system as they are: links as links."""
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.exists():
            yield from ("--ro-bind", name, name)
    for pattern in _ETC:
        for path in sorted(Path("/etc").glob(pattern)):
            yield from ("--ro-bind-try", str(path), str(path))


def _is_system(folder: Path) -> bool:
    """Return whether a folder is visible already, or so wide that mounting it would show all files."""
    home = Path.home()
    inside_system = any(folder.is_relative_to(name) for name in _SYSTEM)
    return inside_system or folder == home or folder in home.parents
