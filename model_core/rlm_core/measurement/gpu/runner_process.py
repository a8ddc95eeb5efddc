"""The child process: reads one order from stdin, runs it, and sends events to its parent.

What user code prints goes to stderr. When the parent is gone, its end of
stdin closes and this process ends at once, whatever it is doing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import threading
import traceback
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NoReturn

from .bench_rows import Row

RUNNERS = ("triton_runner", "torch_runner", "onnx_runner", "generate_runner")


def main() -> None:
    """Run the order that comes on stdin."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    order = json.loads(orders.readline())
    threading.Thread(target=_end_with_the_parent, args=(orders,), daemon=True).start()
    _limit_memory(order["memory"])
    channel = Channel(stream, set(order["done"]))
    if order["runner"] not in RUNNERS:
        raise SystemExit(f"no runner is called {order['runner']}")
    importlib.import_module(f"{__package__}.{order['runner']}").run(order["options"], channel)
    channel.end()
    stream.flush()
    # Threads and contexts of user code must not hold the process.
    os._exit(0)


def _end_with_the_parent(orders: IO[str]) -> None:
    while orders.read(1):
        pass
    os._exit(1)


def _limit_memory(size: int) -> None:
    if size <= 0:
        return
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc", "not enough memory")
# After one of these nothing more can be done in this process.
_LOST = ("illegal memory access", "launch failure", "misaligned address", "device-side assert", "hardware error")
_COMPILE = ("CompilationError", "CompileTimeAssertionFailure", "OutOfResources", "PTXASError", "UnsupportedLanguage")


class Channel:
    """The channel from a runner to its parent process. ``done`` are the keys that need no work."""

    def __init__(self, stream: IO[str], done: set[str]) -> None:
        self._stream, self.done = stream, done

    def wanted(self, key: str) -> bool:
        """Return whether there is no row with this key yet; announce a known one to the parent."""
        if key in self.done:
            self._send({"event": "known", "key": key})
        return key not in self.done

    def begin(self, row: Row) -> None:
        """Announce the next row, with its ``key``: it remains if the process dies."""
        self._send({"event": "begin", "row": row})

    def row(self, row: Row) -> None:
        """The result, joined to what was begun."""
        self._send({"event": "row", "row": row})

    def nothing(self) -> None:
        """End the row that was begun without a result."""
        self._send({"event": "pass"})

    def failed(self, error: BaseException, **more: Any) -> None:
        """A row about an error; a process that is lost to its GPU ends here and asks for a successor."""
        status, text = classify(error)
        self.row({"status": status, "error": text, **more})
        if any(word in text.lower() for word in _LOST):
            self.again()

    def again(self) -> NoReturn:
        """Ask for a new process that goes on with the rest."""
        self._send({"event": "again"})
        os._exit(0)

    def end(self) -> None:
        """All work is done."""
        self._send({"event": "end"})

    def _send(self, event: Mapping[str, Any]) -> None:
        try:
            self._stream.write(json.dumps(event, default=str) + "\n")
            self._stream.flush()
        except OSError:
            os._exit(1)


def classify(error: BaseException) -> tuple[str, str]:
    """Status and one line for an error: ``memory``, ``compile``, ``wrong`` or ``error``."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = " ".join(str(error).split())
    place = _place(error)
    line = f"{type(error).__name__}{f' at {place}' if place else ''}{f': {text}' if text else ''}"
    if isinstance(error, WrongResultError):
        return "wrong", text[:600]
    if names & {"MemoryError", "OutOfMemoryError"} or any(word in text.lower() for word in _OUT_OF_MEMORY):
        return "memory", line[:600]
    if names & set(_COMPILE) or any(name in text for name in _COMPILE):
        return "compile", _innermost(error)[:600]
    return ("crash" if any(word in text.lower() for word in _LOST) else "error"), line[:600]


class WrongResultError(Exception):
    """A result that differs from its reference."""


def _place(error: BaseException) -> str:
    """File and line of the user's code that the error came out of, empty where it came from none."""
    ours = str(Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if "site-packages" not in one.filename and not one.filename.startswith(ours)]
    theirs = [one for one in theirs if Path(one.filename).is_file()]
    return f"{Path(theirs[-1].filename).name}:{theirs[-1].lineno}" if theirs else ""


def _innermost(error: BaseException) -> str:
    """Return the innermost error of the compiler, with the line that it names."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: " + " ".join(str(error).split())


def import_file(path: Path) -> ModuleType:
    """The module of a Python file; its code runs.

    Raises:
        ImportError: the file cannot be imported as a module; and whatever its own code raises.
    """
    path = path.resolve()
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        names.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if len(names) > 1:
        return importlib.import_module(".".join(names))
    # Two files of one name may be imported one after the other, and neither is to shadow a library.
    name = f"{path.stem.replace('.', '_')}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
