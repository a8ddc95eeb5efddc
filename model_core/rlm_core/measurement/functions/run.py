"""Runs a project's tests once for latency and once for peak memory, in separate processes that take turns.

A test that hangs or ends its process is lost alone: the run continues without it. Whatever happens, the samples taken
until then are in the run's folder.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from rlm_core.errors import DataError
from rlm_core.processes import end_group, stop_signals

from .injected.rlm_probe.script import MAIN
from .injected.rlm_probe.session import CANNOT_WRITE, PLUGIN, PLUGINS, VARIABLE, Request
from .recordings import Recording, read_recordings

Pass = Literal["latency", "memory"]
Note = Callable[[str], None]
MEMORY_TIMES = 4  # so many times the limit of a test holds in the memory pass, which is slower
INSIDE = Path(__file__).parent / "injected"
_MOST_RESTARTS = 50
_REFUSAL_SECONDS = 60.0
_ABOVE = "its output is above"
_POLL_SECONDS, _GRACE_SECONDS = 0.2, 10.0
_USAGE, _NO_TESTS = 4, 5  # exit status of pytest
_ASK = "import sys{}; print(*sys.version_info[:2], sys.implementation.name)"


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The plan of a run: ``python -m pytest *arguments`` in ``folder``, once for each of ``passes``.

    ``packages`` are import names; ``calls`` of a function are taken a test; ``timeout`` is in seconds a test, 0 for
    no limit. ``part`` ``(i, n)`` takes every n-th file of tests from the i-th on. ``pause_share``: the passes
    change when tests have run so many times as long as pytest takes to begin, which it then does twice more. With
    ``examples`` arguments of calls are kept, to call functions again with larger inputs. No test begins after a process
    has run tests for ``seconds`` of processor time (0: no limit).
    """

    python: str
    arguments: tuple[str, ...]
    folder: Path
    packages: tuple[str, ...]
    passes: tuple[Pass, ...] = ("latency", "memory")
    calls: int = 5
    timeout: float = 300.0
    part: tuple[int, int] = (0, 1)
    pause_share: float = 20.0
    examples: bool = False
    seconds: float = 0.0

    @property
    def command(self) -> list[str]:
        """The command line that is run."""
        # A file of tests that cannot be imported does not leave the others out.
        return [self.python, "-m", "pytest", "--continue-on-collection-errors", *self.arguments]


def find_python(folder: Path) -> str:
    """The interpreter of a project: that of the active environment, of its ``.venv``, or the one that runs this."""
    end = Path("Scripts", "python.exe") if os.name == "nt" else Path("bin", "python")
    environments = [Path(active)] if (active := os.environ.get("VIRTUAL_ENV")) else []
    for environment in (*environments, folder / ".venv"):
        if (environment / end).is_file():
            return str(environment / end)
    return sys.executable


def check_python(python: str, *, needs_pytest: bool = True) -> None:
    """Check that an interpreter can measure tests, or an application.

    Raises:
        DataError: it cannot be run, has no pytest where it needs that, or is too old or no CPython.
    """
    ask = _ASK.format(", pytest" if needs_pytest else "")
    try:
        found = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"{python}: cannot be run ({error}); name an interpreter with --python") from None
    if found.returncode:
        last = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
        what = "run pytest" if needs_pytest else "be used"
        raise DataError(f"{python}: cannot {what} ({last}); install it there or name another with --python")
    major, minor, implementation = found.stdout.split()
    if (int(major), int(minor)) < (3, 11) or implementation != "cpython":
        raise DataError(f"{python}: is {implementation} {major}.{minor}; code is measured under CPython 3.11 or later")


def run(plan: SuitePlan, folder: Path, note: Note, output: IO[bytes] | None = None) -> None:
    """Run all passes; samples go to ``folder``; ``note`` receives what went wrong and what was done about it.

    The passes take turns: when the tests of the first have taken a while, it pauses at the end of a file, and the
    others run the same tests. ``output`` receives what pytest prints; without it that is printed here.

    Raises:
        DataError: pytest could not begin, or nothing can be written.
        KeyboardInterrupt: the user has stopped the run.
    """
    first, *others = [_PassRun(plan, metric, folder, note, output) for metric in plan.passes]
    first.pauses = bool(others)
    while True:
        tests = first.run()
        for other in others if tests else ():
            other.run(tests)
        if not first.has_paused:
            return


@dataclass(frozen=True, slots=True)
class ScriptPlan:
    """The plan of a run of an application: ``python *command`` in the working folder, measured for one metric.

    ``command`` is a script, or ``-m`` and a module, with arguments. ``packages`` are import names; the script's own
    functions are measured too. ``calls`` of a function are taken.
    """

    python: str
    command: tuple[str, ...]
    packages: tuple[str, ...]
    metric: Pass = "latency"
    calls: int = 100
    examples: bool = False


def run_script(plan: ScriptPlan, folder: Path) -> int:
    """Run an application once and return its exit status; samples go to ``folder``.

    It keeps the terminal: signals reach it as they would without measuring, and it alone decides what they do.
    """
    request = Request(str(folder), plan.metric, (*plan.packages, MAIN), plan.calls, examples=plan.examples)
    environment = _environment(request)
    with stop_signals() as came:
        process = subprocess.Popen([plan.python, "-m", "rlm_probe.script", *plan.command], env=environment)
        passed = 0
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_SECONDS)
            # Ctrl-C reaches the whole terminal; other signals have come to this process alone.
            for number in came[passed:]:
                if number != signal.SIGINT:
                    process.send_signal(number)
            passed = len(came)


class _PassRun:
    """The attempts to run the tests for one metric; each leaves out what those before it have begun."""

    def __init__(self, plan: SuitePlan, metric: Pass, folder: Path, note: Note, output: IO[bytes] | None) -> None:
        self._plan, self._metric, self._folder, self._note, self._output = plan, metric, folder, note, output
        self._begun: list[str] = []
        self._restarts = 0
        self.pauses = self.has_paused = False

    def run(self, only: Iterable[str] = ()) -> list[str]:
        """Run the tests, or ``only`` some, up to the next pause or the end, and return the names of those begun."""
        first = len(self._begun)
        self.has_paused = False
        allowed = self._written("only", only)
        while self._restarts <= _MOST_RESTARTS:
            if self._attempt(allowed):
                break
        else:
            self._note(f"the process of the tests ended {_MOST_RESTARTS} times: the rest was not measured")
        return self._begun[first:]

    def _attempt(self, only: Path | None) -> bool:
        """Start pytest once; whether it has done all that it can."""
        before = set(self._folder.glob("*.jsonl"))
        request = Request(
            str(self._folder),
            self._metric,
            self._plan.packages,
            self._plan.calls,
            self._plan.timeout * (MEMORY_TIMES if self._metric == "memory" else 1),
            skip=_text(self._written("skip", self._begun)),
            only=_text(only),
            stop_when_full=True,
            part=self._plan.part,
            launched=time.monotonic(),
            pause_share=self._plan.pause_share if self.pauses else 0.0,
            examples=self._plan.examples,
            seconds=self._plan.seconds,
        )
        status = _attempt(self._plan, request, self._folder, self._note, self._output)
        recordings = [one for one in read_recordings(self._folder) if one.path not in before]
        leader = next((one for one in recordings if not one.is_worker), None)
        if status == CANNOT_WRITE:
            raise DataError(f"{self._folder}: cannot be written; free some space, what was seen until then is kept")
        if leader is None or status == _USAGE:
            raise DataError(f"pytest could not begin: {_refusal(self._plan)}")
        if status == _NO_TESTS and not self._begun and self._plan.part == (0, 1):
            self._note("pytest found no tests")
        new = [test for one in recordings for test in one.tests]
        self._begun += new
        if leader.end is not None:
            self.has_paused = bool(leader.end.get("paused"))
            return True
        self._restarts += 1
        self._note(f"the process of the tests ended {_where(leader, status)}; the rest goes on without it")
        return not new

    def _written(self, what: str, names: Iterable[str]) -> Path | None:
        """A file with the names of tests; None without any."""
        text = "".join(f"{name}\n" for name in names)
        if not text:
            return None
        path = self._folder / f"{what}-{self._metric}.txt"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return path


def _text(path: Path | None) -> str:
    return str(path) if path is not None else ""


def _refusal(plan: SuitePlan) -> str:
    """Why pytest does not begin and what to do, from what it prints when it is asked to collect the tests alone."""
    command = [*plan.command, "--collect-only", "-q"]
    try:
        done = subprocess.run(
            command,
            cwd=plan.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_REFUSAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return _ABOVE
    printed = done.stderr
    if option := re.search(r"unrecognized arguments: (\S+)", printed):
        name = option[1]
        if name in plan.arguments:
            return f"it does not know the option {name}; see pytest --help"
        if name in os.environ.get("PYTEST_ADDOPTS", "").split():
            return f"it does not know the option {name}, which PYTEST_ADDOPTS has; unset that variable"
        file = re.search(r"inifile: (.+)", printed)
        where = f"addopts in {_shown(file[1].strip(), plan)} has" if file else "its configuration has"
        return (
            f"it does not know the option {name}, which {where}: a plug-in is missing; install it for {plan.python}, or"
            " leave the options out: rlm-lsp measure tests -- -o addopts="
        )
    errors = re.findall(r"^(?:E  |ERROR:) *(.+)", printed, re.MULTILINE)
    if conftest := re.search(r"while loading conftest '(.+)'", printed):
        why = errors[-1] if errors else "see its output above"
        return f"{_shown(conftest[1], plan)} cannot be imported ({why}); install what it needs for {plan.python}"
    return f"{errors[-1]}; its output is above" if errors else _ABOVE


def _shown(path: str, plan: SuitePlan) -> str:
    """A path as below the project's folder."""
    return os.path.relpath(path, plan.folder) if Path(path).is_relative_to(plan.folder) else path


def _attempt(plan: SuitePlan, request: Request, folder: Path, note: Note, output: IO[bytes] | None) -> int:
    """Run pytest once and return its exit status; nothing that it started in its process group outlives it."""
    limit = request.timeout
    watchdog = Watchdog(folder, folder.glob("*.jsonl"), limit and limit + _GRACE_SECONDS)
    with stop_signals() as came:
        group = 0 if os.name == "posix" else None
        process = subprocess.Popen(
            plan.command,
            cwd=plan.folder,
            env={**_environment(request), PLUGINS: _joined(PLUGINS, PLUGIN, ",")},
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
            end_group(process)


def _environment(request: Request) -> dict[str, str]:
    return {
        **os.environ,
        VARIABLE: request.to_text(),
        "PYTHONPATH": _joined("PYTHONPATH", str(INSIDE), os.pathsep),
    }


def _joined(variable: str, first: str, between: str) -> str:
    rest = os.environ.get(variable)
    return f"{first}{between}{rest}" if rest else first


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


def _where(leader: Recording, status: int) -> str:
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    return f"in {leader.tests[-1]} ({how})" if leader.in_test else f"between tests ({how})"


_IDLE_TIMES = 4
_IDLE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class HungProcess:
    """A process that does not go on, and the test that it is in; empty outside of tests."""

    pid: int | None
    test: str


@dataclass(slots=True)
class _FollowedRecording:
    pid: int
    offset: int = 0
    rest: bytes = b""
    last: bytes = b""
    grew: float = 0.0


class Watchdog:
    """Follows the recordings of one attempt; those in ``before`` are of earlier ones.

    A test may take ``limit`` seconds; between tests, all processes together may be silent four times as long, at least
    ten minutes, since imports and fixtures of whole sessions may take their time. A limit of 0 lets everything pass.
    """

    def __init__(self, folder: Path, before: Iterable[Path], limit: float) -> None:
        self._folder, self._limit = folder, limit
        self._before = frozenset(before)
        self._followed: dict[Path, _FollowedRecording] = {}
        self._grew = time.monotonic()

    def look(self) -> HungProcess | None:
        """A process that hangs, if any does; one whose test hangs comes first."""
        if not self._limit:
            return None
        now = time.monotonic()
        for path in self._folder.glob("*.jsonl"):
            if path not in self._before:
                self._follow(path, now)
        for path, one in self._followed.items():
            if one.last.startswith(b'["test"') and now - one.grew > self._limit:
                # It is reported once.
                self._before |= {path}
                self._followed.pop(path)
                return HungProcess(one.pid, one.last[len(b'["test","') : -2].decode(errors="replace"))
        if now - self._grew > max(self._limit * _IDLE_TIMES, _IDLE_SECONDS):
            return HungProcess(None, "")
        return None

    def _follow(self, path: Path, now: float) -> None:
        one = self._followed.get(path)
        if one is None:
            pid = path.name.partition("-")[0]
            one = self._followed[path] = _FollowedRecording(int(pid) if pid.isdigit() else 0, grew=now)
        try:
            if path.stat().st_size == one.offset:
                return
            with path.open("rb") as file:
                file.seek(one.offset)
                data = file.read()
        except OSError:
            return
        one.offset += len(data)
        lines = (one.rest + data).split(b"\n")
        one.rest = lines.pop()
        if lines:
            one.last, one.grew, self._grew = lines[-1], now, now
