"""``pytest --rlm``: measure functions in an ordinary run of the tests, under the same interpreter.

One run has one metric: latency, or with ``--rlm-memory`` peak memory. Without these options nothing is done, and
nothing beyond this file is imported.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_RUN: pytest.StashKey[Path] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("rlm-lsp", "measuring functions (rlm-lsp)")
    group.addoption("--rlm", action="store_true", help="Measure the latency of functions while tests run.")
    group.addoption("--rlm-memory", action="store_true", help="Measure their peak memory instead; slower.")
    group.addoption(
        "--rlm-package",
        action="append",
        default=[],
        metavar="NAME",
        help="A package to measure, by its import name; may be repeated. Default: those under the root directory.",
    )
    group.addoption("--rlm-calls", type=int, default=5, metavar="N", help="Calls of a function a test. Default: 5.")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before the project's own files are imported."""
    options = early_config.known_args_namespace
    if not (options.rlm or options.rlm_memory):
        return
    from rlm_core.measurement.store import Store

    from .collect import new_run
    from .injected.rlm_probe.plugin import start
    from .injected.rlm_probe.session import VARIABLE, Request
    from .sources import packages_under

    if VARIABLE in os.environ:
        # A worker of xdist, whose leader has made the run.
        if "PYTEST_XDIST_WORKER" in os.environ:
            start(early_config, Request.from_text(os.environ[VARIABLE]))
        return
    packages = tuple(options.rlm_package) or tuple(packages_under(early_config.rootpath))
    if not packages:
        raise pytest.UsageError(f"--rlm: {early_config.rootpath} has no package; name one with --rlm-package")
    folder = new_run(Store())
    request = Request(str(folder), "memory" if options.rlm_memory else "latency", packages, options.rlm_calls)
    if start(early_config, request) is not None:
        os.environ[VARIABLE] = request.to_text()
        early_config.stash[_RUN] = folder


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Take in what was seen."""
    if _RUN not in config.stash:
        return
    from rlm_core.measurement.store import Store

    from .collect import import_run

    reporter = config.pluginmanager.get_plugin("terminalreporter")
    try:
        found = import_run(Store(), config.stash[_RUN])
        words = f"{len(found.measurements):,} functions measured; rlm-lsp measure list shows what is kept"
    except Exception as error:
        # The tests have ended; what they showed stays in its folder.
        words = f"not kept yet: {error}"
    if reporter is not None:
        reporter.write_line(f"rlm-lsp: {words}")
