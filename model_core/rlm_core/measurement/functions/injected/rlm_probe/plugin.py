"""The pytest plugin: notifies a session when tests begin and end, stops tests that hang, skips those named.

As a plugin of ``PYTEST_PLUGINS`` it reads its request from the environment; ``ProbePlugin`` is what another plugin
registers for the same.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

from .session import CANNOT_WRITE, PLUGIN, PLUGINS, VARIABLE, ProbeSession, Request

_AGAIN = 1.0  # seconds; code that swallows the failure is interrupted again
_MOST_LETTERS = 200  # of a reason
_started = False


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before the project's own files are imported."""
    if VARIABLE in os.environ:
        start(early_config, Request.from_text(os.environ[VARIABLE]))


def start(config: pytest.Config, request: Request) -> ProbePlugin | None:
    """Measure the tests of a configuration; None for that of a pytest inside a test."""
    global _started
    if _started:
        return None
    _started = True
    try:
        measuring = ProbePlugin(config, request)
    except (RuntimeError, OSError) as error:
        raise pytest.UsageError(f"rlm-lsp: cannot measure: {error}") from None
    config.pluginmanager.register(measuring, "rlm-measuring")
    return measuring


class ProbePlugin:
    """The hooks of one configuration."""

    def __init__(self, config: pytest.Config, request: Request) -> None:
        self._config, self._request = config, request
        self.session = ProbeSession(request)
        self._status = -1
        self._passed = 0
        self._paused = False
        # Kept here, since tests may freeze time in every module.
        self._clock, self._process_clock = time.monotonic, time.process_time
        self._process_began = self._process_clock()
        self._first_test: float | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Processes that tests start must not measure again; workers of xdist must."""
        is_worker = "PYTEST_XDIST_WORKER" in os.environ
        if session.config is self._config and (is_worker or getattr(self._config.option, "dist", "no") == "no"):
            os.environ.pop(VARIABLE, None)
            rest = [name for name in os.environ.get(PLUGINS, "").split(",") if name and name != PLUGIN]
            os.environ[PLUGINS] = ",".join(rest)
            if not rest:
                del os.environ[PLUGINS]

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests of other parts, those that an earlier attempt has begun, and those not asked for."""
        if config is not self._config:
            return
        first, step = self._request.part
        files = set(sorted({_file(item) for item in items})[first::step])
        begun = _names_in(self._request.skip) if self._request.skip else frozenset()
        chosen = [item for item in items if _file(item) in files and _name(item) not in begun]
        if self._request.only:
            wanted = _names_in(self._request.only)
            chosen = [item for item in chosen if _name(item) in wanted]
        if len(chosen) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
            items[:] = chosen

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        """A test with its fixtures."""
        if item.config is not self._config:
            yield
            return
        if self._first_test is None:
            self._first_test = self._clock()
        self.session.begin_test(_name(item))
        stop = self._limit()
        try:
            yield
        finally:
            stop()
            self.session.end_test()
        if self._is_full():
            item.session.shouldstop = f"rlm-lsp: {self.session.spool.failure}"
        elif nextitem is not None and _file(nextitem) != _file(item) and self._is_time_to_pause():
            self._paused = True
            item.session.shouldstop = "rlm-lsp: next, the peak memory in the tests that have run"
        elif self._request.seconds and self._process_clock() - self._process_began > self._request.seconds:
            item.session.shouldstop = f"rlm-lsp: the tests have run for {self._request.seconds:g} s"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests that pass."""
        self._passed += report.when == "call" and report.passed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file of tests cannot be read."""
        if report.failed:
            self.session.spool.uncollected(report.nodeid, _reason(report.longreprtext))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Keep the exit status, or set it where nothing can be written any more."""
        if session.config is self._config:
            self._status = int(exitstatus)
            if self._is_full():
                session.exitstatus = CANNOT_WRITE

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Say if measuring had to stop."""
        if config is self._config and self.session.spool.failure is not None:
            terminalreporter.write_line(
                f"rlm-lsp: {self.session.spool.failure}: measuring stopped there, what came before is kept", yellow=True
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """The end."""
        if config is self._config:
            self.session.finish(self._status, self._passed, paused=self._paused)

    def _is_full(self) -> bool:
        return self.session.spool.failure is not None and self._request.stop_when_full

    def _is_time_to_pause(self) -> bool:
        share, launched = self._request.pause_share, self._request.launched
        if not share or self._first_test is None or "PYTEST_XDIST_WORKER" in os.environ:
            return False
        return self._clock() - self._first_test > share * (self._first_test - launched)

    def _limit(self) -> TimeLimit:
        if (
            self._request.timeout
            and hasattr(signal, "SIGALRM")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN)
        ):
            return TimeLimit(self._request.timeout)
        return TimeLimit(0)


class TimeLimit:
    """Fails what runs on the main thread after so many seconds, unless it is called before; 0 never does."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        if seconds:
            self._before = signal.signal(signal.SIGALRM, self._fail)
            signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)

    def __call__(self) -> None:
        """Give up the limit."""
        if self._seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _fail(self, number: int, frame: FrameType | None) -> None:
        pytest.fail(f"rlm-lsp: the test did not end within {self._seconds:g} s")


def _names_in(file: str) -> frozenset[str]:
    return frozenset(Path(file).read_text(encoding="utf-8", errors="surrogatepass").splitlines())


def _reason(text: str) -> str:
    """The error of a traceback as pytest prints it, in one line."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors[-1:] or lines[:1] or ["no reason given"])[0][:_MOST_LETTERS]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _name(item: pytest.Item) -> str:
    """The name of a test on one line."""
    return " ".join(item.nodeid.split())
