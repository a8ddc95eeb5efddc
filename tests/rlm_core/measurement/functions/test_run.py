"""Tests of a project are run and measured: what is seen of which function, and what becomes of tests that misbehave."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.measurement.functions.collect import import_run, new_run
from rlm_core.measurement.functions.run import (
    Pass,
    ScriptPlan,
    SuitePlan,
    check_python,
    find_python,
    run,
    run_script,
)
from rlm_core.measurement.store import Store
from rlm_core.measurement.types import Measurement, SizeSpread

from .projects import QUIET, environment, write_project

pytestmark = pytest.mark.timeout(300)

INJECTED = sys.version_info < (3, 12)
FAULTS = """
import os
import signal

import pytest
import shapes


def test_first():
    assert shapes.square(2) == 4


def test_hangs():
    while shapes.square(2):
        pass


def test_forks():
    if os.fork() == 0:
        shapes.fib(3)
        os._exit(0)
    assert os.wait()[1] == 0
    assert shapes.fib(3) == 2


def test_leaves():
    shapes.hold(8)
    os._exit(0)


def test_prints_binary():
    os.write(1, bytes(range(256)))
    assert shapes.slow(3) == 3


def test_hangs_and_hears_nothing():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True:
        pass


def test_last():
    assert shapes.total([1, 2]) == 5
"""


def measured(
    folder: Path,
    *arguments: str,
    passes: tuple[Pass, ...] = ("latency", "memory"),
    timeout: float = 60,
    pause_share: float = 20,
) -> tuple[dict[tuple[str, str], Measurement], list[str], Counter[str]]:
    """Measurements by metric and qualified name, what was noted, and the numbers of tests."""
    store, notes = Store(folder / "data" / "m.sqlite3"), list[str]()
    place = new_run(store)
    plan = SuitePlan(
        sys.executable, (*QUIET, *arguments), folder, ("shapes",), passes, timeout=timeout, pause_share=pause_share
    )
    with contextlib.suppress(KeyboardInterrupt):
        run(plan, place, notes.append)
    found = import_run(store, place)
    return {(one.metric, one.qualname): one for one in found.measurements}, notes, found.tests


@pytest.fixture(autouse=True)
def plain_pytest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The measured tests run without the plugins and options of this run."""
    for name, value in environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Measurement]:
    folder = write_project(tmp_path_factory.mktemp("project"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder / "home").items():
            patch.setenv(name, value)
        found, notes, tests = measured(folder)
    assert notes == []
    assert tests == {"latency": 10, "memory": 10}
    return found


def test_functions_have_calls_of_several_tests_and_a_place(seen: dict[tuple[str, str], Measurement]) -> None:
    one = seen["latency", "total"]
    # Five of nine calls in each of four tests.
    assert (one.calls, one.tests) == (20, 4)
    assert (one.module, one.file, one.kind) == ("shapes", "shapes/__init__.py", "function")
    assert one.path.endswith("src/shapes/__init__.py")
    lines = Path(one.path).read_text().splitlines()
    assert lines[one.line - 1] == "def total(sides):"
    assert lines[one.last_line - 1] == "    return sum(values)"
    assert one.workload == {"runtime": f"cpython-3.{sys.version_info.minor}"}
    assert one.low <= one.median <= one.high


def test_a_measurement_has_the_sizes_of_its_calls(seen: dict[tuple[str, str], Measurement]) -> None:
    for metric in ("latency", "memory"):
        one = seen[metric, "total"]
        assert one.sizes == {"sides": SizeSpread(0, 1.5, 3)}
        # Of 0, of 1, and of 2 and 3 sides; the first call, of 0, is apart.
        assert [(row.sizes["sides"], row.calls, row.scaled) for row in one.sized] == [
            (0, 4, False),
            (1, 5, False),
            (2.5, 10, False),
        ]
        assert one.first is not None
        assert seen[metric, "slow"].sizes == {"n": SizeSpread(2000, 2000, 2000)}


QUEUE = """
class Queue:
    def __init__(self, rows):
        self.rows = rows
        self.__seen = {}

    def __len__(self):
        raise AssertionError("measuring asks for no length")

    @property
    def rest(self):
        raise AssertionError("measuring reads no property")

    def drain(self, most, *more, key=None, **options):
        if most < 0:
            return self.rest
        self.__seen[most] = key
        most = [row for row in self.rows[:most]]
        del more
        return len(most), locals()


def stream(items):
    for item in items:
        items = None
        yield item


async def later(items):
    return len(items)


def deep(n, text):
    return deep(n - 1, text) if n else text


def holds(size):
    return hold(size) + hold(size)


def hold(size):
    return len(bytearray(size))
"""
QUEUE_TESTS = """
import asyncio
import sys

import pytest
import shapes


@pytest.mark.parametrize("n", range(1, 4))
def test_queue(n):
    queue = shapes.Queue(["abc"] * n)
    for most in range(4):
        length, names = queue.drain(most, 1, 2, key=(1,), option=1)
        assert length == min(n, most)
        assert set(names) == {"self", "most", "key", "options"}
    assert list(shapes.stream([1] * n)) == [1] * n
    assert asyncio.run(shapes.later("ab")) == 2
    with pytest.raises(RecursionError):
        shapes.deep(10**6, "abc")
    shapes.deep(sys.getrecursionlimit() // 2, "abc")
    assert shapes.holds(100_000) == 200_000
"""


def test_sizes_are_those_before_the_call_and_no_code_runs_for_them(tmp_path: Path) -> None:
    found, notes, tests = measured(write_project(tmp_path, QUEUE_TESTS, QUEUE))
    assert (notes, tests) == ([], {"latency": 3, "memory": 3})
    for metric in ("latency", "memory"):
        drain = found[metric, "Queue.drain"]
        assert (drain.calls, drain.exceptions) == (12, 0)
        assert drain.sizes == {
            "key": SizeSpread(1, 1, 1),
            "more": SizeSpread(2, 2, 2),
            "most": SizeSpread(0, 1.5, 3),
            "options": SizeSpread(1, 1, 1),
            "self.__seen": SizeSpread(0, 1.5, 3),
            "self.__seen[]": SizeSpread(1, 1, 1),
            "self.rows": SizeSpread(1, 2, 3),
            "self.rows[]": SizeSpread(3, 3, 3),
        }
        assert found[metric, "Queue.__init__"].sizes["rows"] == SizeSpread(1, 2, 3)
        assert found[metric, "deep"].sizes["text"] == SizeSpread(3, 3, 3)
        if sys.version_info >= (3, 12):
            # A generator's parameters may have changed when it goes on.
            assert found[metric, "stream"].sizes == {"items": SizeSpread(1, 2, 3)}
            assert found[metric, "later"].sizes == {"items": SizeSpread(2, 2, 2)}
    # The two calls inside hold nothing at the same time.
    assert abs(found["memory", "holds"].median - 100_000) < 512


def test_a_test_that_fails_counts_for_the_calls_that_returned(seen: dict[tuple[str, str], Measurement]) -> None:
    # Three tests of four call it through `total`, one on threads, and one fails after it.
    assert seen["latency", "square"].tests == 5


def test_latency_is_inclusive_and_without_what_measuring_costs(seen: dict[tuple[str, str], Measurement]) -> None:
    inner, outer = seen["latency", "slow"], seen["latency", "around"]
    assert 20e-6 < inner.median < 20e-3
    assert 1.5 < outer.median / inner.median < 3
    assert 0 <= seen["latency", "square"].median < 20e-6


def test_the_clock_goes_on_where_tests_freeze_time(tmp_path: Path) -> None:
    tests = """
import freezegun
import shapes


@freezegun.freeze_time("2020-01-01")
def test_frozen():
    for _ in range(5):
        assert shapes.slow(20_000)
"""
    found, notes, _ = measured(write_project(tmp_path, tests), passes=("latency",))
    assert notes == []
    assert 200e-6 < found["latency", "slow"].median < 200e-3


@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_tests_with_a_fake_file_system_are_measured(tmp_path: Path, scope: str) -> None:
    tests = """
import os
from pathlib import Path

import shapes


def test_fake(FIXTURE):
    FIXTURE.create_file("/only/here", contents="text")
    for _ in range(5):
        assert shapes.square(3) == 9
    assert Path("/only/here").read_text() == "text"
    assert os.listdir("/only") == ["here"]


def test_more():
    for _ in range(5):
        assert shapes.square(3) == 9
"""
    tests = tests.replace("FIXTURE", "fs" if scope == "function" else f"fs_{scope}")
    found, notes, counts = measured(write_project(tmp_path, tests), "-p", "pyfakefs.pytest_plugin", passes=("latency",))
    assert notes == []
    assert counts["latency"] == 2
    assert (found["latency", "square"].tests, found["latency", "square"].calls) == (2, 10)


def test_tests_that_replace_functions_of_os_are_measured(tmp_path: Path) -> None:
    tests = """
import os

import pytest
import shapes


@pytest.fixture(scope="module", autouse=True)
def no_disk():
    def refuse(*arguments):
        raise OSError(9, "not in this world")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", refuse)
        patch.setattr(os, "close", refuse)
        yield


def test_first():
    for _ in range(5):
        assert shapes.square(3) == 9


def test_second():
    for _ in range(5):
        assert shapes.square(3) == 9
"""
    found, notes, counts = measured(write_project(tmp_path, tests), passes=("latency",))
    assert notes == []
    assert counts["latency"] == 2
    assert (found["latency", "square"].tests, found["latency", "square"].calls) == (2, 10)


def test_recursion_is_one_call_and_marked(seen: dict[tuple[str, str], Measurement]) -> None:
    one = seen["latency", "fib"]
    assert one.recursive
    assert one.calls == 1
    assert 2e-6 < one.median < 5e-3
    assert not seen["latency", "slow"].recursive


def test_calls_that_raise_are_counted_and_in_no_quantile(seen: dict[tuple[str, str], Measurement]) -> None:
    for metric in ("latency", "memory"):
        assert (seen[metric, "refuses"].calls, seen[metric, "refuses"].exceptions) == (1, 1)


def test_the_peak_of_a_nested_call_counts_for_its_caller(seen: dict[tuple[str, str], Measurement]) -> None:
    for name in ("hold", "hold_inside"):
        assert 1 << 20 <= seen["memory", name].median < (1 << 20) + 4096
    assert seen["memory", "square"].median < 200


def test_generators_and_coroutines_are_marked(seen: dict[tuple[str, str], Measurement]) -> None:
    kinds = {name: seen["latency", name].kind for name in ("stream", "later") if ("latency", name) in seen}
    assert kinds == ({} if INJECTED else {"stream": "generator", "later": "coroutine"})


def test_nested_functions_and_methods_have_their_qualified_names(seen: dict[tuple[str, str], Measurement]) -> None:
    assert seen["latency", "Box.volume.<locals>.inner"].calls == 1
    decorated = seen["latency", "Box.volume"]
    assert "lru_cache" in Path(decorated.path).read_text().splitlines()[decorated.line - 1]


def test_tests_that_misbehave_cost_only_themselves(tmp_path: Path) -> None:
    folder = write_project(tmp_path, FAULTS)
    found, notes, tests = measured(folder, "-s", passes=("latency",), timeout=2)
    assert tests["latency"] == 7
    # What forked, hung or left does not hide the others; calls of the forked child are not ours.
    assert {name for _, name in found} >= {"square", "fib", "slow", "total"}
    assert found["latency", "fib"].calls == 1
    assert ("latency", "hold") not in found
    assert [note.split("::")[-1] for note in notes] == [
        "test_leaves (with status 0); the rest goes on without it",
        "test_hangs_and_hears_nothing does not end after 2 s: its process is killed",
        "test_hangs_and_hears_nothing (by signal 9); the rest goes on without it",
    ]


def test_a_long_run_changes_between_the_metrics_and_keeps_both_when_it_is_cut(tmp_path: Path) -> None:
    folder = write_project(tmp_path, "import shapes\ndef test_it():\n    assert shapes.square(2) == 4\n")
    for name, call in (("a", "fib(5)"), ("b", "slow(9)")):
        code = f"def test_it(n):\n    shapes.{call}\n"
        code = f"import pytest\nimport shapes\n@pytest.mark.parametrize('n', range(2))\n{code}"
        (folder / "tests" / f"test_{name}.py").write_text(code)
    found, notes, tests = measured(folder, pause_share=1e-9)
    assert (notes, tests) == ([], {"latency": 5, "memory": 5})
    for metric in ("latency", "memory"):
        assert [found[metric, name].tests for name in ("fib", "slow", "square")] == [2, 2, 1]
    code = "import os\nimport signal\nimport shapes\ndef test_it():\n    shapes.hold(9)\n"
    (folder / "tests" / "test_c.py").write_text(f"{code}    os.kill(os.getppid(), signal.SIGINT)\n    signal.pause()\n")
    found, _, tests = measured(folder, pause_share=1e-9)
    assert {name for metric, name in found if metric == "memory"} == {"fib", "slow"}
    assert {name for metric, name in found if metric == "latency"} >= {"fib", "slow"}
    assert tests == {"latency": 5, "memory": 4}


def test_workers_of_xdist_measure_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_project(tmp_path)
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    found, notes, tests = measured(folder, "-n", "2", passes=("latency",))
    assert notes == []
    assert tests["latency"] == 10
    assert (found["latency", "total"].calls, found["latency", "total"].tests) == (20, 4)


def test_tests_see_the_environment_without_what_measuring_put_there(tmp_path: Path) -> None:
    code = "import os, shapes\ndef test_it():\n    shapes.square(2)\n    assert os.read(0, 1) == b''\n"
    folder = write_project(tmp_path, code + "    assert not {'RLM_PROBE', 'PYTEST_PLUGINS'} & {*os.environ}\n")
    command = [sys.executable, "-c", _RUN_IN, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(tmp_path / "home"), check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


_RUN_IN = f"""
import sys
from pathlib import Path
from rlm_core.measurement.functions.collect import new_run
from rlm_core.measurement.functions.run import SuitePlan, run
from rlm_core.measurement.store import Store
folder = Path(sys.argv[1])
plan = SuitePlan(sys.executable, {QUIET!r}, folder, ("shapes",), ("latency",))
run(plan, new_run(Store(folder / "data" / "m.sqlite3")), print)
"""


def test_pytest_that_cannot_begin_is_an_error_of_one_line(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    with pytest.raises(DataError, match="could not begin: it does not know the option --no-such-option; see pytest"):
        measured(folder, "--no-such-option")
    with pytest.raises(DataError, match="cannot be run"):
        check_python(str(tmp_path / "nothing"))


def test_what_keeps_pytest_from_beginning_is_named(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    (folder / "tests" / "conftest.py").write_text("import not_installed\n")
    missing = r"begin: tests/conftest.py cannot be imported \(ModuleNotFoundError: No module named 'not_installed'\);"
    with pytest.raises(DataError, match=missing):
        measured(folder, "tests")
    (folder / "tests" / "conftest.py").unlink()
    configuration = folder / "pyproject.toml"
    configuration.write_text(configuration.read_text() + 'addopts = "--cov=shapes -q"\n')
    with pytest.raises(DataError, match=r"option --cov=shapes, which addopts in pyproject\.toml has"):
        measured(folder, "tests")
    found, _, _ = measured(folder, "-o", "addopts=", passes=("latency",))
    assert ("latency", "total") in found


def test_the_interpreter_of_the_project_takes_precedence_over_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert find_python(tmp_path) == sys.executable
    own = tmp_path / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    own.parent.mkdir(parents=True)
    own.touch()
    assert find_python(tmp_path) == str(own)


SCRIPT = """
import os
import signal
import sys

import shapes


def helper(sides):
    return shapes.total(sides)


print(sys.argv[1:], __name__, sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
helper(range(int(sys.argv[1])))
if "killed" in sys.argv:
    os.kill(os.getpid(), signal.SIGTERM)
sys.exit(3)
"""


@pytest.mark.parametrize(("end", "status"), [("exits", 3), ("killed", 143)])
def test_an_application_is_measured_as_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], end: str, status: int
) -> None:
    folder = write_project(tmp_path)
    script = folder / "src" / "app.py"
    script.write_text(SCRIPT, encoding="utf-8")
    store = Store(tmp_path / "data" / "m.sqlite3")
    place = new_run(store)
    assert run_script(ScriptPlan(sys.executable, (str(script), "50", end), ("shapes",)), place) == status
    assert capfd.readouterr().out == f"['50', '{end}'] __main__ True\n"
    found = {one.qualname: one for one in import_run(store, place).measurements}
    assert {"helper", "total", "square"} <= set(found)
    assert (found["square"].calls, found["total"].tests) == (50, 1)
    assert found["total"].sizes["sides"].most == 50


def test_a_module_is_run_like_a_script(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_project(tmp_path)
    (folder / "src" / "app.py").write_text("import shapes, sys\nprint(sys.argv[1:], shapes.slow(9))\n")
    monkeypatch.chdir(folder / "src")
    store = Store(tmp_path / "data" / "m.sqlite3")
    place = new_run(store)
    plan = ScriptPlan(sys.executable, ("-m", "app", "-x"), ("shapes",), "memory", 2)
    assert run_script(plan, place) == 0
    assert capfd.readouterr().out == "['-x'] 22\n"
    assert {(one.metric, one.qualname) for one in import_run(store, place).measurements} == {("memory", "slow")}
