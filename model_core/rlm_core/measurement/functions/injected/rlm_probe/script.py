"""Runs an application's own script or module under a session: ``python -m rlm_probe.script [-m] TARGET [ARGUMENTS]``.

The request comes from the environment, as in tests; the whole run counts as one test. The application sees the
arguments, ``sys.path`` and ``__main__`` that it would have without measuring. What it ends with, ends this process.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import types
from pathlib import Path

from .session import VARIABLE, ProbeSession, Request

MAIN = "__main__"


def main() -> None:
    """Run the target and write what was seen, however it ends short of a kill."""
    request = Request.from_text(os.environ.pop(VARIABLE))
    is_module = sys.argv[1] == "-m"
    target, *arguments = sys.argv[2:] if is_module else sys.argv[1:]
    session = ProbeSession(request)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    session.begin_test(" ".join(target.split()))
    try:
        sys.argv = [target, *arguments]
        if is_module:
            runpy.run_module(target, run_name=MAIN, alter_sys=True)
        else:
            if not sys.flags.safe_path:
                sys.path[0] = str(Path(target).resolve().parent)
            _run_file(session, target)
    finally:
        session.end_test()
        session.finish(0, 1, paused=False)


def _run_file(session: ProbeSession, target: str) -> None:
    """Run a file as ``__main__``; a folder or an archive as Python does."""
    path = Path(target)
    if not path.is_file() or path.suffix in (".pyz", ".zip"):
        runpy.run_path(target, run_name=MAIN)
        return
    module = types.ModuleType(MAIN)
    vars(module).update(__file__=target, __builtins__=__builtins__)
    sys.modules[MAIN] = module
    exec(session.compiled(path.read_bytes(), MAIN, target), vars(module))  # noqa: S102 - what the user asked to run


def _terminate(number: int, frame: types.FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
