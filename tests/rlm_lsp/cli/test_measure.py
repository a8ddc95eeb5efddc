"""``rlm-lsp measure`` and ``pytest --rlm`` as a user runs them, and what is kept when they are interrupted."""

from __future__ import annotations

import json
import marshal
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rlm_core.measurement import Store
from rlm_lsp.cli.app import app

from tests.rlm_core.measurement.functions.projects import QUIET, environment, write_project
from tests.warm_server import COLD, warm_command

pytestmark = pytest.mark.timeout(300)

MEASURE = ("measure", "tests")
COMMAND = (*COLD, *MEASURE)
LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2);"
    " del sys.argv[1]; sys.argv[0] = 'rlm_lsp'; runpy.run_module('rlm_lsp', run_name='__main__')"
)
# Looks at nothing before the tests have ended.
PATIENT = (
    "import runpy, sys; from rlm_core.measurement.functions import run; run._POLL_SECONDS = 60;"
    " sys.argv[0] = 'rlm_lsp'; runpy.run_module('rlm_lsp', run_name='__main__')"
)
# The third test reports that the others have ended, and then runs until it is stopped.
WAITING = """
import time
from pathlib import Path

import shapes


def test_first():
    assert shapes.square(2) == 4


def test_second():
    assert shapes.total([1, 2]) == 5


def test_third():
    assert shapes.slow(3) == 3
    Path("third").touch()
    while True:
        time.sleep(0.01)
"""
WAITING_IMPORT = "import time\nfrom pathlib import Path\nPath('third').touch()\nwhile True:\n    time.sleep(0.01)\n"


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def functions(home: Path) -> set[str]:
    """The names of what is kept."""
    return {one.qualname for one in Store(home / "rlm-lsp" / "measurements.sqlite3").all()}


def measure_tests(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Measure the latency in the tests of a project, whose folder is that of the user too."""
    command = [*warm_command(), *MEASURE, "--no-memory", "--python", sys.executable, "--", *QUIET, *arguments]
    variables = environment(folder / "home")
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def invoke(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["measure", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder with the measurements of a project."""
    folder = write_project(tmp_path_factory.mktemp("measured"))
    home = folder / "home"
    command = [*warm_command(), *MEASURE, "--python", sys.executable, "--", *QUIET]
    done = subprocess.run(command, cwd=folder, env=environment(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    notes = done.stderr.splitlines()
    assert notes[0].startswith(
        f"rlm-lsp: measures shapes; runs in {folder}, twice: {sys.executable} -m pytest --continue-on"
    )
    assert notes[1].endswith("functions in 10 tests")
    assert "1 failed, 9 passed" in done.stdout
    return home


@pytest.fixture
def store(home: Path) -> tuple[str, str]:
    return "--store", str(home / "rlm-lsp" / "measurements.sqlite3")


def test_what_was_measured_is_listed(store: tuple[str, str]) -> None:
    status, out, _ = invoke("list", *store)
    assert status == 0
    head, *rows = out.splitlines()
    assert head.split()[:6] == ["package", "version", "device", "workload", "metric", "units"]
    assert len(rows) == 2
    _, out, _ = invoke("list", "shapes", "--functions", "--format", "json", *store)
    rows = json.loads(out)
    [row] = [row for row in rows if (row["function"], row["metric"]) == ("shapes:total", "latency")]
    assert (row["calls"], row["tests"]) == ("20", "4")
    assert row["median"].split()[1] in ("ns", "µs", "ms")
    assert row["sizes"] == {"sides": [0, 1.5, 3]}
    table = invoke("list", "shapes", "--functions", *store)[1]
    assert any("shapes:total" in line and "sides 0–3" in line for line in table.splitlines())
    assert invoke("list", "nothing", "--format", "json", *store)[1] == "[]\n"


def test_labels_are_exported_and_taken_in_elsewhere(store: tuple[str, str], home: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "labels.jsonl", tmp_path / "other.sqlite3"
    assert invoke("export", "--out", out, *store)[0] == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["qualname"] for row in rows} == functions(home)
    assert not any("text" in row or str(home.parent) in json.dumps(row) for row in rows)
    assert invoke("import", out, "--store", other)[0] == 0
    again = invoke("export", "--store", other)[1]
    assert [json.loads(line) for line in again.splitlines()] == rows


def test_a_profile_is_imported_and_shown_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def total(n):\n    return sum(range(n))\n\n\ndef main():\n    total(1_000_000)\n\n\nmain()\n"
    (tmp_path / "work.py").write_text(source)
    work = str(tmp_path.resolve() / "work.py")
    profile: dict[tuple[str, int, str], tuple[int, int, float, float, dict[str, int]]] = {
        (work, 1, "total"): (1, 1, 0.02, 0.02, {}),
        (work, 5, "main"): (1, 1, 0.02, 0.02, {}),
        ("/usr/lib/python3.12/runpy.py", 1, "run_path"): (1, 1, 1e-3, 0.04, {}),
    }
    (tmp_path / "work.prof").write_bytes(marshal.dumps(profile))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    status, _, notes = invoke("import", "work.prof")
    assert (status, notes) == (0, "rlm-lsp: work.prof: the latency of 2 functions imported from cProfile\n")
    predicted = CliRunner().invoke(app, ["predict", "work.py", "--format", "json"])
    rows = {row["qualname"]: row for row in json.loads(predicted.stdout) if row["metric"] == "latency"}
    assert rows["total"]["source"] == "measured"
    assert (rows["total"]["measured"]["tool"], rows["total"]["measured"]["calls"]) == ("cProfile", 1)
    # A committed line and an export keep the source.
    assert invoke("export", "--to", ".rlm")[0] == 0
    assert '"tool":"cProfile"' in (tmp_path / ".rlm" / "measurements.jsonl").read_text()
    assert invoke("export", "--out", "rows.jsonl")[0] == 0
    assert invoke("import", "rows.jsonl", "--store", tmp_path / "other.sqlite3")[0] == 0
    assert {one.workload["tool"] for one in Store(tmp_path / "other.sqlite3").all()} == {"cProfile"}
    (tmp_path / "bad.prof").write_bytes((tmp_path / "work.prof").read_bytes()[:40])
    status, _, notes = invoke("import", "bad.prof")
    assert status == 2
    assert re.fullmatch(r"rlm-lsp: error: bad\.prof: not a profile of cProfile \(.+\); write one with .+\n", notes)


def test_the_measurements_of_a_project_are_written_to_be_committed(
    store: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    nothing = CliRunner().invoke(app, ["measure", "export", "--to", ".rlm", *store])
    assert nothing.exit_code == 2
    assert "holds no measurement of" in nothing.stderr
    assert not Path(".rlm").exists()


def test_the_text_of_functions_is_exported_on_request(store: tuple[str, str]) -> None:
    status, out, stderr = invoke("export", "shapes", "--source", *store)
    rows = {row["qualname"]: row for row in map(json.loads, out.splitlines())}
    assert status == 0
    assert stderr == ""
    assert rows["square"]["text"] == "def square(side):\n    return side * side\n"
    assert [one["level"] for one in rows["around"]["callees"]] == [1]


def test_mistakes_are_reported_in_one_line(store: tuple[str, str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"package": "a"}\n')
    for arguments, reason in (
        (("export", "--format", "parquet", *store), "Parquet needs a file"),
        (("export", "nothing", *store), "holds no measurement of nothing"),
        (("import", bad, *store), "bad.jsonl:1: not a row"),
        (("import", tmp_path / "none.jsonl", *store), "cannot be read"),
        (("tests", "--package", "a", "--python", tmp_path / "nothing", *store), "name an interpreter with --python"),
        (("export", "--out", tmp_path / "no" / "folder", *store), "cannot be written"),
    ):
        status, out, stderr = invoke(*arguments)
        assert (status, out) == (2, "")
        assert stderr.startswith("rlm-lsp: error: ")
        assert reason in stderr
        assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("def test_it():\n    pass\n", "no test imports shapes; give packages by their import names"),
        ("import shapes\ndef test_it():\n    pass\n", "the tests call no Python function of shapes"),
        ("import shapes\ndef test_it(missing):\n    shapes.square(2)\n", "no test passed; see the output of pytest"),
        ("import shapes\nsquare = shapes.square\n", "no test ran; name the folder of your tests after --"),
    ],
)
def test_why_nothing_was_measured_is_said_and_gives_status_1(tmp_path: Path, tests: str, why: str) -> None:
    done = measure_tests(write_project(tmp_path, tests))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"rlm-lsp: nothing was measured: {why}")


def test_files_of_tests_that_cannot_be_imported_are_named_and_the_others_are_measured(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    for name in ("a", "b"):
        (folder / "tests" / f"test_{name}.py").write_text("import not_installed\n\ndef test_it():\n    pass\n")
    (folder / "tests" / "test_c.py").write_text("def f(:\n")
    done = measure_tests(folder)
    assert done.returncode == 0
    assert "square" in functions(tmp_path / "home")
    lines = done.stderr.splitlines()
    reason = "ModuleNotFoundError: No module named 'not_installed'"
    assert (
        f"rlm-lsp: tests/test_a.py and 1 more file: left out, since pytest cannot import the file ({reason}); install"
        f" what it needs for {sys.executable}"
    ) in lines
    assert any(line.startswith("rlm-lsp: tests/test_c.py: left out") and "SyntaxError" in line for line in lines)
    (folder / "tests" / "test_shapes.py").unlink()
    done = measure_tests(folder)
    assert done.returncode == 1
    assert "import names" not in done.stderr


def test_a_pytest_that_cannot_begin_is_the_only_error(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    done = measure_tests(folder, "--no-such-option")
    assert done.returncode == 2
    [_, line] = [line for line in done.stderr.splitlines() if line.startswith("rlm-lsp: ")]
    assert line.startswith("rlm-lsp: error: pytest could not begin: it does not know the option --no-such-option")


@pytest.mark.parametrize(("place", "kept"), [("test", {"square", "total", "slow"}), ("import", set())])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_keeps_what_was_seen(tmp_path: Path, place: str, kept: set[str], number: int) -> None:
    folder = write_project(tmp_path, WAITING if place == "test" else WAITING_IMPORT)
    home = tmp_path / "home"
    command = [*COMMAND, "--python", sys.executable, "--", *QUIET]
    variables = environment(home, PYTHONFAULTHANDLER="1")
    process = subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE)
    try:
        wait_for((folder / "third").exists)
        process.send_signal(number)
        process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        # Python then prints the stack on stderr.
        process.send_signal(signal.SIGABRT)
        process.communicate()
        raise
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert functions(home) == kept
    assert list((home / "rlm-lsp" / "runs").iterdir()) == []


def test_a_signal_that_comes_as_the_tests_end_stops_the_run_too(tmp_path: Path) -> None:
    last = "import os\nimport signal\n\nimport shapes\n\n\ndef test_last():\n    assert shapes.square(2) == 4\n"
    folder = write_project(tmp_path, f"{last}    os.kill(os.getppid(), signal.SIGINT)\n")
    command = [sys.executable, "-c", PATIENT, *COMMAND[3:], "--python", sys.executable, "--", *QUIET]
    done = subprocess.run(
        command, cwd=folder, env=environment(tmp_path / "home"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert functions(tmp_path / "home") == {"square"}
    # The second pass, for memory, does not begin.
    assert done.stdout.count("1 passed") == 1


def test_a_run_whose_leader_was_killed_is_taken_in_later(tmp_path: Path) -> None:
    folder = write_project(tmp_path, WAITING)
    home = tmp_path / "home"
    command = [*COMMAND, "--python", sys.executable, "--", *QUIET]
    process = subprocess.Popen(command, cwd=folder, env=environment(home), stdout=subprocess.DEVNULL)
    try:
        wait_for((folder / "third").exists)
    finally:
        process.kill()
        process.communicate()
    store = home / "rlm-lsp" / "measurements.sqlite3"
    [recording] = (home / "rlm-lsp" / "runs").glob("*/*.jsonl")
    pid = int(recording.name.partition("-")[0])
    # The tests go on without their leader, and as long as they write, their run is theirs.
    assert invoke("list", "--store", store)[1] == ""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "shapes" in invoke("list", "--store", store)[1])
    assert functions(home) == {"square", "total"}


@pytest.mark.parametrize("full", ["tests", "store"])
def test_a_full_disk_keeps_what_was_seen(tmp_path: Path, full: str) -> None:
    # What is written of a test is chiefly its name.
    names = [f"test_{'x' * 1500}_{number}" for number in range(400 if full == "tests" else 3)]
    code = "".join(f"def {name}():\n    assert shapes.square(2) == 4\n" for name in names)
    folder = write_project(tmp_path, "import shapes\n" + code)
    home = tmp_path / "home"
    limit = 300_000 if full == "tests" else 12_000
    command = [sys.executable, "-c", LIMITED, str(limit), *COMMAND[3:], "--no-memory", "--python", sys.executable]
    variables = environment(home, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        [*command, "--", *QUIET], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "free some space" in done.stderr.splitlines()[-1]
    if full == "store":
        # The next command finds the run and takes it in.
        assert functions(home) == set()
        stderr = invoke("list", "--store", home / "rlm-lsp" / "measurements.sqlite3")[2]
        assert "an interrupted run was taken in" in stderr
    assert functions(home) == {"square"}


@pytest.mark.parametrize("workers", [0, 2])
def test_pytest_measures_by_itself(tmp_path: Path, workers: int) -> None:
    folder = write_project(tmp_path)
    home = tmp_path / "home"
    plugins = "rlm_core.measurement.functions.pytest_plugin" + (",xdist.plugin" if workers else "")
    command = [sys.executable, "-m", "pytest", *QUIET, *(("-n", str(workers)) if workers else ())]
    variables = environment(home, PYTEST_PLUGINS=plugins)
    for option, metric in (("--rlm", "latency"), ("--rlm-memory", "memory")):
        done = subprocess.run(
            [*command, option], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        assert "functions measured" in done.stdout
        found = Store(home / "rlm-lsp" / "measurements.sqlite3").all()
        [total] = [one for one in found if (one.qualname, one.metric) == ("total", metric)]
        assert (total.calls, total.tests) == (20, 4)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert "measured" not in done.stdout


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    """A folder with two programs and two inputs."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "inputs").mkdir()
    (tmp_path / "solutions" / "first.py").write_text("import sys\nprint(sum(range(int(sys.stdin.readline()))))\n")
    (tmp_path / "solutions" / "second.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "inputs" / "large.txt").write_text("100000\n")
    (tmp_path / "inputs" / "small.txt").write_text("10\n")
    return tmp_path


def program_arguments(solutions: Path, *more: str) -> list[str]:
    inputs = [str(solutions / "inputs" / name) for name in ("large.txt", "small.txt")]
    return [
        *("measure", "programs", str(solutions / "solutions"), "--inputs", *inputs),
        *("--python", sys.executable, "--store", str(solutions / "m.sqlite3"), "--sandbox", "limits", *more),
    ]


def test_a_dry_run_says_what_would_run_and_runs_nothing(solutions: Path) -> None:
    trace = solutions / "ran"
    (solutions / "solutions" / "second.py").write_text(f"open({str(trace)!r}, 'w')\n")
    done = CliRunner().invoke(app, program_arguments(solutions, "--dry-run"))
    assert done.exit_code == 0
    assert "programs: 2 python" in done.stdout
    assert "4 pairs of program and input, each once to warm up and 5 times to measure" in done.stdout
    assert "sandbox: limits alone" in done.stdout
    assert "limits of a run: 10 s, 2,048 MiB of memory, 64 processes, 256 MiB per file" in done.stdout
    command = shlex.join([sys.executable, str(solutions / "solutions" / "first.py")])
    assert f"{command} < large.txt, small.txt" in done.stdout
    assert not trace.exists()
    assert not (solutions / "m.sqlite3").exists()


def test_names_of_programs_and_inputs_do_not_control_the_terminal(solutions: Path) -> None:
    program = solutions / "solutions" / "a\x1b[2Jb.py"
    program.write_text("print(input())\n")
    (solutions / "solutions" / "\x1b[31m.xyz").write_text("x")
    hostile = solutions / "x\nsandbox: bubblewrap.txt"
    hostile.write_text("1\n")
    planned = CliRunner().invoke(app, program_arguments(solutions, "--inputs", str(hostile), "--dry-run"))
    done = CliRunner().invoke(app, program_arguments(solutions, "--inputs", str(hostile), "--repeat", "1"))
    listed = ["measure", "list", "--functions", "--format", "json", "--store", str(solutions / "m.sqlite3")]
    rows = CliRunner().invoke(app, listed)
    for result in (planned, done, rows):
        assert result.exit_code == 0
        lines = result.output.split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("sandbox: bubblewrap") for line in lines)
    assert r"a\x1b[2Jb.py < x\x0asandbox: bubblewrap.txt: " in done.stdout
    assert "a\x1b[2Jb.py:<file>" in {row["function"] for row in json.loads(rows.stdout)}


def test_measurements_are_stored_and_a_failure_is_reported(solutions: Path) -> None:
    done = CliRunner().invoke(app, program_arguments(solutions, "--repeat", "2"))
    assert done.exit_code == 0
    assert "second.py < large.txt: exit status 3; it does not count" in done.stderr
    form = re.compile(r"first.py < (\w+).txt: [\d.]+ m?s \(.*s\), [\d.]+ MiB")
    lines = [form.fullmatch(line) for line in done.stdout.splitlines()]
    assert [line and line[1] for line in lines] == ["large", "small"]
    assert "measured 1 of 2 programs, 2 pairs of program and input; 2 failed" in done.stderr
    listed = CliRunner().invoke(
        app, ["measure", "list", "--functions", "--format", "json", "--store", str(solutions / "m.sqlite3")]
    )
    rows = json.loads(listed.stdout)
    assert {(row["function"], row["input"]) for row in rows} == {
        ("first.py:<file>", "large.txt"),
        ("first.py:<file>", "small.txt"),
    }


def test_without_a_sandbox_nothing_runs_unless_the_user_says_so(
    solutions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(solutions / "nothing"))
    trace = solutions / "ran"
    (solutions / "solutions" / "first.py").write_text(f"open({str(trace)!r}, 'w')\n")
    arguments = [one for one in program_arguments(solutions) if one not in ("--sandbox", "limits")]
    refused = CliRunner().invoke(app, arguments)
    assert refused.exit_code == 2
    assert "bwrap is not installed" in refused.stderr
    assert "--sandbox limits" in refused.stderr
    assert not trace.exists()


def test_nothing_measured_is_status_1_and_bad_usage_2(solutions: Path) -> None:
    (solutions / "solutions" / "first.py").unlink()
    assert CliRunner().invoke(app, program_arguments(solutions, "--repeat", "1")).exit_code == 1
    for more, message in (
        (("--language", "cobol"), "programs can be measured in python, c,"),
        (("--language", "go"), "no program in go"),
    ):
        done = CliRunner().invoke(app, program_arguments(solutions, *more))
        assert done.exit_code == 2
        assert message in done.stderr
    assert CliRunner().invoke(app, ["measure", "programs", str(solutions)]).exit_code == 2


def test_ctrl_c_keeps_what_was_measured(solutions: Path) -> None:
    # The second program runs until it is stopped; with one run each, the first is kept by then.
    (solutions / "solutions" / "second.py").write_text("import time\ntime.sleep(1000)\n")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "rlm_lsp", *program_arguments(solutions, "--repeat", "1", "--timeout", "500")]
    store = Store(solutions / "m.sqlite3")
    process = subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(store.all()) == 4)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"stored in {store.path}" in stderr
    assert {one.file for one in store.all()} == {"first.py"}


def test_larger_inputs_and_applications_are_measured(tmp_path: Path) -> None:
    tests = "import shapes\n\ndef test_it():\n    assert shapes.total(list(range(40))) > 0\n"
    folder = write_project(tmp_path, tests)
    (folder / "rlm_bench.py").write_text("import shapes\n\ndef bench_slow(n):\n    return shapes.slow, n\n")
    (folder / "src" / "app.py").write_text("import sys, shapes\nshapes.hold(int(sys.argv[1]))\nsys.exit(5)\n")
    variables = environment(folder / "home")
    command = [*COMMAND, "--no-memory", "--python", sys.executable, "--scale", "--scale-time", "60", "--", *QUIET]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert "rlm-lsp: larger inputs: 2 functions measured at several sizes" in lines
    # `square` has numbers that no loop counts.
    assert "rlm-lsp: not at several sizes: 1 (no input that can grow)" in lines
    store = Store(folder / "home" / "rlm-lsp" / "measurements.sqlite3")
    [total] = [one for one in store.all() if one.qualname == "total"]
    assert [row.sizes["sides"] for row in total.sized if row.scaled][:3] == [40, 120, 400]
    run = [*COMMAND[:-1], "run", "--python", sys.executable, str(folder / "src" / "app.py"), "4096", "--memory"]
    done = subprocess.run(run, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    [hold] = [one for one in store.all() if one.qualname == "hold"]
    assert (hold.metric, hold.sizes["size"].most) == ("latency", 4096)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("tests", "--package", "shapes", "--scale", "--ray", "auto"), "leave out --ray"),
        (("run", "--memory", "--scale", "app.py"), "leave out --memory"),
    ],
)
def test_larger_inputs_need_this_machine_and_the_latency_pass(
    store: tuple[str, str], arguments: tuple[str, ...], reason: str
) -> None:
    status, _, stderr = invoke(arguments[0], *store, *arguments[1:])
    assert status == 2
    assert reason in stderr
