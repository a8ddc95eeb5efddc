"""Runs a project's tests once for latency and once for peak memory, in processes of their own.

A test that hangs or ends its process costs itself: the run goes on without it. Whatever happens, what was seen until
then lies in the run's folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from rlm_core.errors import DataError

from .injected.rlm_probe.session import CANNOT_WRITE, PLUGIN, PLUGINS, VARIABLE, Request
from .recordings import Recording, read_recordings
from .signals import stops
from .watchdog import Watchdog

Pass = Literal["latency", "memory"]
Note = Callable[[str], None]
MEMORY_TIMES = 4  # so many times the limit of a test holds in the memory pass, which is slower
INSIDE = Path(__file__).parent / "injected"
_MOST_RESTARTS = 50
_POLL_SECONDS, _GRACE_SECONDS = 0.2, 10.0
_USAGE, _NO_TESTS = 4, 5  # exit status of pytest
_ASK = "import sys, pytest; print(*sys.version_info[:2], sys.implementation.name)"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run: ``python -m pytest *arguments`` in ``folder``, once for each of ``passes``.

    ``packages`` are import names; ``calls`` of a function are taken a test; ``timeout`` is in seconds a test, 0 for
    no limit. ``part`` ``(i, n)`` takes every n-th file of tests from the i-th on.
    """

    python: str
    arguments: tuple[str, ...]
    folder: Path
    packages: tuple[str, ...]
    passes: tuple[Pass, ...] = ("latency", "memory")
    calls: int = 5
    timeout: float = 300.0
    part: tuple[int, int] = (0, 1)

    @property
    def command(self) -> list[str]:
        """The command line that is run."""
        return [self.python, "-m", "pytest", *self.arguments]


def find_python(folder: Path) -> str:
    """The interpreter of a project: that of the active environment, of its ``.venv``, or the one that runs this."""
    end = Path("Scripts", "python.exe") if os.name == "nt" else Path("bin", "python")
    environments = [Path(active)] if (active := os.environ.get("VIRTUAL_ENV")) else []
    for environment in (*environments, folder / ".venv"):
        if (environment / end).is_file():
            return str(environment / end)
    return sys.executable


def check_python(python: str) -> None:
    """See that an interpreter can measure tests.

    Raises:
        DataError: it cannot be run, has no pytest, or is too old or no CPython.
    """
    try:
        found = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{python}: cannot be run ({error}); name an interpreter with --python") from None
    if found.returncode:
        last = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DataError(f"{python}: cannot run pytest ({last}); install it there or name another with --python")
    major, minor, implementation = found.stdout.split()
    if (int(major), int(minor)) < (3, 11) or implementation != "cpython":
        raise DataError(
            f"{python}: is {implementation} {major}.{minor}; tests are measured under CPython 3.11 or later"
        )


def run(plan: Plan, folder: Path, note: Note, output: IO[bytes] | None = None) -> None:
    """Run all passes; what is seen goes to ``folder``, ``note`` is told what went wrong and what is done about it.

    ``output`` takes what pytest prints, which else is printed here.

    Raises:
        DataError: pytest could not begin, or nothing can be written.
        KeyboardInterrupt: the user has stopped the run.
    """
    for one in plan.passes:
        _run_pass(plan, one, folder, note, output)


def _run_pass(plan: Plan, metric: Pass, folder: Path, note: Note, output: IO[bytes] | None) -> None:
    skip = folder / f"skip-{metric}.txt"
    begun: list[str] = []
    for _ in range(_MOST_RESTARTS + 1):
        before = set(folder.glob("*.jsonl"))
        status = _attempt(plan, metric, folder, skip if begun else None, note, output)
        recordings = [one for one in read_recordings(folder) if one.path not in before]
        leader = next((one for one in recordings if not one.is_worker), None)
        if status == CANNOT_WRITE:
            raise DataError(f"{folder}: cannot be written; free some space, what was seen until then is kept")
        if leader is None or status == _USAGE:
            raise DataError(f"pytest could not begin (status {status}); its own words are above")
        if status == _NO_TESTS and not begun and plan.part == (0, 1):
            note("pytest found no tests")
        if leader.end is not None:
            return
        new = [test for one in recordings for test in one.tests]
        note(f"the process of the tests ended {_where(leader, status)}; the rest goes on without it")
        if not new:
            return
        begun += new
        skip.write_text("\n".join(begun) + "\n", encoding="utf-8", errors="surrogatepass")
    note(f"the process of the tests ended {_MOST_RESTARTS} times: the rest was not measured")


def _attempt(plan: Plan, metric: Pass, folder: Path, skip: Path | None, note: Note, output: IO[bytes] | None) -> int:
    """Run pytest once and return its exit status; nothing that it started in its process group outlives it."""
    limit = plan.timeout * (MEMORY_TIMES if metric == "memory" else 1)
    request = Request(
        str(folder),
        metric,
        plan.packages,
        plan.calls,
        limit,
        str(skip) if skip else "",
        stop_when_full=True,
        part=plan.part,
    )
    watchdog = Watchdog(folder, folder.glob("*.jsonl"), limit and limit + _GRACE_SECONDS)
    with stops() as came:
        group = 0 if os.name == "posix" else None
        process = subprocess.Popen(
            plan.command,
            cwd=plan.folder,
            env=_environment(request),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=group,
        )
        try:
            while not came:
                with suppress(subprocess.TimeoutExpired):
                    status = process.wait(_POLL_SECONDS)
                    break
                hung = watchdog.look()
                if hung is not None:
                    what = f"{hung.test} does not end" if hung.test else "pytest does nothing any more"
                    note(f"{what} after {limit:g} s: its process is killed")
                    _kill(hung.pid or process.pid)
            # A signal that comes while pytest ends by itself stops the run too.
            if came:
                _interrupt(process, came)
                raise KeyboardInterrupt
            return status
        finally:
            _kill_group(process)


def _environment(request: Request) -> dict[str, str]:
    def joined(variable: str, first: str, between: str) -> str:
        rest = os.environ.get(variable)
        return f"{first}{between}{rest}" if rest else first

    return {
        **os.environ,
        VARIABLE: request.to_text(),
        PLUGINS: joined(PLUGINS, PLUGIN, ","),
        "PYTHONPATH": joined("PYTHONPATH", str(INSIDE), os.pathsep),
    }


def _interrupt(process: subprocess.Popen[bytes], came: list[int]) -> None:
    """Let pytest end as by Ctrl-C; another one, or ten seconds, end the waiting."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGINT)
    known, deadline = len(came), time.monotonic() + _GRACE_SECONDS
    while len(came) == known and time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_SECONDS)
            return


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _where(leader: Recording, status: int) -> str:
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"in {leader.tests[-1]} ({how})" if leader.in_test else f"between tests ({how})"
