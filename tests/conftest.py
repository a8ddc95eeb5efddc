"""Settings of all tests: the same examples everywhere, no clock on shared machines, and folders of their own.

A module, or a folder's ``conftest.py``, that says ``pytestmark = pytest.mark.extras`` needs packages beyond the
``[test]`` extra (torch, pyarrow, scikit-learn, Ray). With the base install it is left out: importing it would fail.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import os
import re
import signal
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from rlm_core import boundary

settings.register_profile("shared", deadline=None, derandomize=True)
settings.load_profile("shared")

# What the user of this machine has measured must not reach a test, nor a test the user's folders.
_home = tempfile.TemporaryDirectory(prefix="rlm-lsp-tests-")
os.environ |= {f"XDG_{name}_HOME": f"{_home.name}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA", "STATE")}
# A test must not get the facts that another one has found.
os.environ["RLM_LSP_FACTS_CACHE"] = "off"
# Tensors and tables of tests are tiny: more threads would only wait for each other, for minutes on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Hundreds of tests start a process: without bytecode, each would compile the packages again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A pytest that a test starts is not a worker of the one that runs the test.
for _name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
    del os.environ[_name]
# A failure inside must fail the test, also in the processes that tests start.
os.environ["RLM_LSP_STRICT"] = "1"
# A shell that runs the tests in the background has them ignore Ctrl-C, and so would what they start and stop by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests make many short-lived objects: with the default thresholds, garbage collections are a tenth of all their time.
gc.set_threshold(50_000, 20, 20)
# Notices are for people.
os.environ["CI"] = "true"

_CLOSING_SECONDS = 120
_HAS_EXTRAS = all(find_spec(name) is not None for name in ("torch", "pyarrow", "sklearn", "ray"))
_FOLDER = Path(__file__).parent
_MARK = re.compile(r"^pytestmark = .*\bpytest\.mark\.extras\b", re.MULTILINE)


@cache
def _needs_extras(path: Path) -> bool:
    module = path / "conftest.py" if path.is_dir() else path
    return module.suffix == ".py" and module.is_file() and _MARK.search(module.read_text("utf-8")) is not None


@cache
def _is_below_extras(folder: Path) -> bool:
    return any(_needs_extras(above) for above in (folder, *folder.parents) if above.is_relative_to(_FOLDER))


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are caught at the boundary around units, as for users, also in child processes; none is logged yet."""
    monkeypatch.delenv(boundary.STRICT)
    monkeypatch.setattr(boundary, "_reported", boundary._Reported())


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot be imported without the extras."""
    return True if not _HAS_EXTRAS and _needs_extras(collection_path) else None


def pytest_collection_finish() -> None:
    """Leave out of garbage collections what was imported, which is never garbage, and at the end all."""
    gc.freeze()
    atexit.register(gc.freeze)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact() -> None:
    """Limit what follows a failure: pytest ends its own limits there, also for fixtures that are still to be closed."""
    faulthandler.dump_traceback_later(_CLOSING_SECONDS, exit=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests below a folder that needs the extras."""
    if _is_below_extras(item.path.parent):
        item.add_marker("extras")
