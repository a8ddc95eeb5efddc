"""What programs are shut in: bubblewrap where it works, else limits alone, without a network where that can be.

Both are tried by running something in them; what is told is what was seen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rlm_core.errors import DataError

from .execute import Limits, Sandbox, Task, execute, inside

Choice = Literal["auto", "bubblewrap", "limits"]
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu")
# Of /etc what toolchains read: which alternative is chosen, and their own configuration.
_ETC = ("alternatives", "ld.so.*", "localtime", "java*", "php*", "mono", "dotnet", "scala*", "passwd", "group")
_HOME = "/tmp/home"  # noqa: S108 (a folder of the sandbox's own)
_ROOM = 16 << 20
_TRY = Limits(seconds=20.0)


def find_sandbox(choice: Choice) -> Sandbox:
    """The sandbox to use.

    Raises:
        DataError: the one that was chosen does not work here, or none does.
    """
    if not Path("/proc/self/stat").exists():
        raise DataError("programs are measured on Linux only; use a Linux machine or container")
    reasons = []
    if choice in ("auto", "bubblewrap"):
        program = shutil.which("bwrap")
        failed = _try(bubble := Bubblewrap(program)) if program is not None else "bwrap is not installed"
        if program is not None and not failed:
            return bubble
        reasons.append(f"bubblewrap: {failed}")
    if choice in ("auto", "limits"):
        limits = LimitsAlone()
        if not (failed := _try(limits)):
            if choice == "auto":
                limits.told += f" ({reasons[0]})"
            return limits
        reasons.append(f"limits: {failed}")
    raise DataError(f"no sandbox works here ({'; '.join(reasons)}); install bubblewrap, or choose another --sandbox")


def _try(sandbox: Sandbox) -> str:
    """Why a sandbox does not work; empty if it does."""
    with tempfile.TemporaryDirectory(prefix="rlm-lsp-") as build:
        outcome = execute(sandbox, Task(["/bin/sh", "-c", "exit 0"], {}, [], Path(build), _TRY), [])
    if isinstance(sandbox, LimitsAlone):
        sandbox.tell(network_is_cut=outcome.network_is_cut)
    return outcome.failed


class Bubblewrap:
    """A view of the machine without network, home and other processes; only a scratch folder in memory is writable."""

    name = "bubblewrap"
    told = (
        "bubblewrap: no network, no other processes, no home folder; system, toolchain and programs read-only;"
        " files go to a scratch folder in memory"
    )
    is_own_world = True

    def __init__(self, program: str) -> None:
        self._program = program

    def start(self, inner: Sequence[str], task: Task, **popen: Any) -> subprocess.Popen[bytes]:
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
        return subprocess.Popen([self._program, *options, "--", *inner], **popen)

    def close(self) -> None:
        """See :class:`Sandbox`."""


class LimitsAlone:
    """Limits on time, memory, processes and files, in a scratch folder; no network where the kernel allows that.

    Files are as open to the program as to the user.
    """

    name = "limits"
    told = ""
    is_own_world = False

    def __init__(self) -> None:
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def tell(self, *, network_is_cut: bool) -> None:
        """Say what was seen of it."""
        network = "no network" if network_is_cut else "WITH the network"
        self.told = f"limits alone: {network}; programs can read and write what you can"

    def start(self, inner: Sequence[str], task: Task, **popen: Any) -> subprocess.Popen[bytes]:
        """See :class:`Sandbox`."""
        self._scratch = tempfile.TemporaryDirectory(prefix="rlm-lsp-", ignore_cleanup_errors=True)
        home = self._scratch.name
        environment = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "LC_ALL": "C.UTF-8", **task.environment}
        return subprocess.Popen(inner, cwd=home, env=environment, **popen)

    def close(self) -> None:
        """See :class:`Sandbox`."""
        if self._scratch is not None:
            self._scratch.cleanup()


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
    """Whether a folder is seen already, or is so wide that it would show all there is."""
    home = Path.home()
    inside_system = any(folder.is_relative_to(name) for name in _SYSTEM)
    return inside_system or folder == home or folder in home.parents
