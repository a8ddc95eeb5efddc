"""The pytest plugin: notifies a session when tests begin and end, stops tests that hang, skips those named.

As a plugin of ``PYTEST_PLUGINS`` it reads its request from the environment; ``ProbePlugin`` is what another plugin
registers for the same.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest

from .session import CANNOT_WRITE, PLUGIN, PLUGINS, VARIABLE, ProbeSession, Request

_AGAIN = 1.0  # seconds; code that swallows the failure is interrupted again
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
        """Leave out the tests of other parts, and those that an earlier attempt has begun."""
        if config is not self._config:
            return
        first, step = self._request.part
        files = set(sorted({_file(item) for item in items})[first::step])
        begun: set[str] = set()
        if self._request.skip:
            begun |= set(Path(self._request.skip).read_text(encoding="utf-8", errors="surrogatepass").splitlines())
        chosen = [item for item in items if _file(item) in files and _name(item) not in begun]
        if len(chosen) < len(items):
            config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
            items[:] = chosen

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        """A test with its fixtures."""
        if item.config is not self._config:
            yield
            return
        self.session.begin_test(_name(item))
        stop = self._limit()
        try:
            yield
        finally:
            stop()
            self.session.end_test()
        if self._is_full():
            item.session.shouldstop = f"rlm-lsp: {self.session.spool.failure}"

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
            self.session.finish(self._status)

    def _is_full(self) -> bool:
        return self.session.spool.failure is not None and self._request.stop_when_full

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


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _name(item: pytest.Item) -> str:
    """The name of a test on one line."""
    return " ".join(item.nodeid.split())
