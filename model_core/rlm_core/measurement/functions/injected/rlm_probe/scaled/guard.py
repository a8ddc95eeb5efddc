"""Refuses effects while a function is called: writing files, processes, network, threads, waiting, the environment.

An audit hook sees the events before they happen, and cannot be removed. What raises no event before Python 3.13 is
replaced, which must happen before the packages are imported. Reading is allowed below the folders that code
is imported from, since packages load their own data late. What the package changes in its own modules is compared by
the caller; changes elsewhere in memory are not seen.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

_REFUSED = frozenset({
    "_thread.start_joinable_thread", "_thread.start_new_thread", "ctypes.dlopen", "fcntl.fcntl",
    "fcntl.flock", "fcntl.ioctl", "fcntl.lockf", "mmap.__new__", "os.chdir", "os.chflags", "os.chmod", "os.chown",
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.link", "os.lockf", "os.mkdir", "os.posix_spawn",
    "os.putenv", "os.remove", "os.removexattr", "os.rename", "os.rmdir", "os.setxattr", "os.spawn", "os.startfile",
    "os.symlink", "os.system", "os.truncate", "os.unsetenv", "os.utime", "pty.spawn", "resource.setrlimit",
    "signal.pthread_kill", "sqlite3.connect", "subprocess.Popen", "syslog.openlog", "syslog.syslog", "time.sleep",
    "webbrowser.open",
})  # fmt: skip
_PREFIXES = (
    "ftplib.", "http.client.", "imaplib.", "nntplib.", "poplib.", "shutil.", "smtplib.", "socket.", "telnetlib.",
    "tempfile.", "urllib.", "winreg.",
)  # fmt: skip
_UNHEARD: tuple[tuple[ModuleType, str], ...] = (
    (time, "sleep"),
    (_thread, "start_new_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
)
# What modules do while they are imported, which may be late: in a function that is called.
_IMPORTING = frozenset({"ctypes.dlopen", "open for reading", "os.listdir", "os.putenv", "os.scandir", "os.unsetenv"})
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_LISTED = frozenset({"os.listdir", "os.scandir", "os.walk", "glob.glob", "pathlib.Path.glob"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class EffectError(BaseException):
    """A function would have an effect outside of its arguments; not an ``Exception``, so that few catch it."""


class Guard:
    """Refuses effects while it is armed; ``refused`` names the first one, also where the function caught the error."""

    def __init__(self) -> None:
        self.is_armed = False
        self.refused = ""
        self._roots: tuple[str, ...] = ()
        for module, name in _UNHEARD:
            if hasattr(module, name):
                setattr(module, name, self._refusing(getattr(module, name)))
        sys.dont_write_bytecode = True  # an import in a function that is called would
        sys.addaudithook(self._look)

    def arm(self) -> None:
        """Refuse effects from now on."""
        if not self._roots:
            folders = {os.path.realpath(name) for name in (*sys.path, sys.prefix, sys.base_prefix) if name}
            self._roots = tuple(f"{name}{os.sep}" for name in folders if name != os.sep)
        self.refused = ""
        self.is_armed = True

    def disarm(self) -> None:
        """Let everything pass."""
        self.is_armed = False

    def _look(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_armed:
            return
        if event == "open":
            reason = self._opened(*arguments[:3])
        elif event in _REFUSED or event.startswith(_PREFIXES):
            reason = event
        elif event in _LISTED:
            reason = "" if self._is_code(arguments[0] if arguments else None) else event
        else:
            return
        if reason and not (reason in _IMPORTING and _is_importing()):
            self._refuse(reason)

    def _refuse(self, reason: str) -> None:
        self.refused = self.refused or reason
        raise EffectError(reason)

    def _refusing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that refuses while the guard is armed."""

        def call(*arguments: Any, **named: Any) -> Any:
            if self.is_armed:
                self._refuse(f"{function.__module__}.{function.__name__}")
            return function(*arguments, **named)

        return call

    def _opened(self, path: object, mode: object = None, flags: object = None) -> str:
        if isinstance(flags, int) and flags & _WRITES:
            return "open for writing"
        if isinstance(mode, str) and set(mode) & set("wax+"):
            return "open for writing"
        return "" if self._is_code(path) else "open for reading"

    def _is_code(self, path: object) -> bool:
        """Return whether a path is below a folder from which code is imported."""
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return False
        whole = os.path.abspath(path)  # noqa: PTH100 - the hook looks at no file
        return f"{whole}{os.sep}".startswith(self._roots) or whole == os.devnull


def _is_importing() -> bool:
    """Return whether an import is under way in this thread."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
