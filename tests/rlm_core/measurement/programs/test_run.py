"""Whole programs on inputs in a sandbox: what is found, what a run takes, what limits do, what stays after a fault."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.measurement import Measurement, Store, source_hash
from rlm_core.measurement.labels import from_labels, newest, to_labels, with_source
from rlm_core.measurement.programs import ProgramLimits, make_plan, run_plan
from rlm_core.measurement.programs.plan import inputs_for
from rlm_core.measurement.programs.sandbox import Sandbox, SandboxTask, execute, find_sandbox
from rlm_core.measurement.programs.sources import find_programs
from rlm_core.measurement.programs.toolchains import LANGUAGES, TABLE, find_toolchain, wanted

from tests.nested_folders import nested_folders

pytestmark = pytest.mark.timeout(240)

MIB = 2**20
LIMITS = ProgramLimits(5.0, 256 * MIB, 20, 4 * MIB)
# Reads n, holds n bytes, prints n.
HOLDS = """
import sys
n = int(sys.stdin.readline())
held = bytearray(n)
print(len(held))
"""
PROGRAMS = {
    "python": ("a.py", HOLDS),
    "c": ("a.c", '#include <stdio.h>\nint main(void) { int n; return scanf("%d", &n) != 1; }\n'),
    "cpp": ("a.cpp", "#include <iostream>\nint main() { int n; return !(std::cin >> n); }\n"),
    "java": (
        "A.java",
        "package shop;\nclass Helper { }\nclass A { public static void main(String[] args) throws Exception"
        " { if (System.in.read() < 0) System.exit(1); } }\n",
    ),
    "javascript": ("a.js", "if (!require('fs').readFileSync(0, 'utf8')) process.exit(1);\n"),
    "typescript": (
        "a.ts",
        "declare function require(name: string): any;\nconst n: string = require('fs').readFileSync(0, 'utf8');\n"
        "if (!n) throw new Error('no input');\n",
    ),
    "go": ("a.go", 'package main\n\nimport "fmt"\n\nfunc main() {\n\tvar n int\n\tfmt.Scan(&n)\n}\n'),
    "rust": ("a.rs", "fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap(); }\n"),
    "ruby": ("a.rb", "exit 1 unless gets\n"),
    "php": ("a.php", "<?php if (fgets(STDIN) === false) exit(1);\n"),
    "csharp": ("a.cs", "class A { static int Main() { return System.Console.ReadLine() == null ? 1 : 0; } }\n"),
    "kotlin": ("a.kt", "fun main() { readLine()!! }\n"),
    "swift": ("a.swift", "if readLine() == nil { fatalError() }\n"),
    "scala": ("a.scala", "object A { def main(args: Array[String]): Unit = { scala.io.StdIn.readLine().trim } }\n"),
}


def works(choice: str) -> bool:
    try:
        find_sandbox(choice)  # type: ignore[arg-type]
    except DataError:
        return False
    return True


def best_sandbox() -> Sandbox:
    return find_sandbox("bubblewrap" if works("bubblewrap") else "limits")


@pytest.fixture(scope="module", params=[name for name in ("bubblewrap", "limits") if works(name)])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each sandbox that works on this machine."""
    return find_sandbox(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of programs, with one input beside it."""
    made = tmp_path / "solutions"
    made.mkdir()
    (tmp_path / "n.txt").write_text("1000\n")
    return made


def measured(
    folder: Path, sandbox: Sandbox, limits: ProgramLimits = LIMITS, repeat: int = 2
) -> tuple[list[Measurement], list[str]]:
    """The measurements of the programs of a folder on ``n.txt``, and the messages about them."""
    plan = make_plan(folder, [str(folder.parent / "n.txt")], sandbox, sys.executable, (), limits, repeat)
    found: list[Measurement] = []
    notes: list[str] = list(plan.problems)
    run_plan(plan, "a processor", found.extend, notes.append)
    return found, notes


NESTS = """
import os
for _ in range(300):
    os.mkdir("d")
    os.chdir("d")
"""


def test_folders_that_a_program_nests_are_removed(
    folder: Path, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (folder / "a.py").write_text(NESTS)
    with nested_folders(folder.parent):
        found, notes = measured(folder, sandbox, repeat=1)
    assert notes == []
    assert found
    assert list(scratch.iterdir()) == []


def outcome(sandbox: Sandbox, folder: Path, program: str, limits: ProgramLimits = LIMITS) -> str:
    """How a Python program fails."""
    (folder / "a.py").write_text(program)
    found, [message] = measured(folder, sandbox, limits)
    assert found == []
    return message


def test_the_table_has_every_language_of_programs() -> None:
    assert set(LANGUAGES) == set(PROGRAMS)
    assert all(wanted(name) for name in LANGUAGES)
    assert len({(one.language, one.name) for one in TABLE}) == len(TABLE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_of_each_language_runs_where_its_toolchain_is(language: str, folder: Path) -> None:
    file, text = PROGRAMS[language]
    (folder / file).write_text(text)
    sandbox = best_sandbox()
    toolchain = find_toolchain(language, sys.executable)
    if toolchain is None:
        with pytest.raises(DataError, match=f"nothing here runs {language}; install"):
            measured(folder, sandbox)
        return
    found, notes = measured(folder, sandbox, ProgramLimits(30.0), repeat=1)
    assert notes == []
    assert {one.metric for one in found} == {"latency", "memory"}
    for one in found:
        assert (one.kind, one.language, one.file) == ("program", language, file)
        assert one.workload["runtime"] == toolchain.runtime
        assert one.median > (1e-5 if one.metric == "latency" else 100_000)


def test_time_and_memory_are_those_of_the_program(folder: Path, sandbox: Sandbox) -> None:
    (folder / "big.py").write_text(HOLDS)
    (folder / "child.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'held = bytearray(100_000_000)'], check=True)\n"
    )
    (folder / "sleeps.py").write_text("import time\ntime.sleep(0.3)\n")
    (folder.parent / "n.txt").write_text("150000000\n")
    found, notes = measured(folder, sandbox)
    assert notes == []
    value = {(one.file, one.metric): one for one in found}
    assert 150e6 < value["big.py", "memory"].median < 190e6
    # The largest process counts, a child too; and nothing of this test's own size or of the sandbox.
    assert 100e6 < value["child.py", "memory"].median < 140e6
    assert value["sleeps.py", "memory"].median < 25e6
    assert 0.3 <= value["sleeps.py", "latency"].median < 3
    for one in found:
        assert one.low <= one.median <= one.high
        assert (one.calls, one.exceptions) == (2, 0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys\nsys.exit(3)\n", "exit status 3"),
        ("raise ValueError('bad input')\n", "exit status 1: ValueError: bad input"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "ended by SIGSEGV"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()\n", "what measures it was ended"),
        ("held = []\nwhile True:\n    held.append(bytearray(1 << 24))\n", "took more than 256 MiB"),
        ("print('x' * 30_000_000)\n", "File too large"),
        (
            "import os, time\nfor _ in range(60):\n    if os.fork() == 0:\n        break\ntime.sleep(60)\n",
            "had more than 20 processes at once",
        ),
    ],
)
def test_a_fault_costs_the_program_alone(program: str, message: str, folder: Path, sandbox: Sandbox) -> None:
    assert message in outcome(sandbox, folder, program)
    (folder / "a.py").write_text(HOLDS)
    found, notes = measured(folder, sandbox, repeat=1)
    assert (len(found), notes) == (2, [])


def test_the_network_is_as_configured(folder: Path, sandbox: Sandbox) -> None:
    # A listener of this test's own: to be reached where nothing is cut.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (folder / "a.py").write_text(
            f"import socket\nsocket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 5)\n"
        )
        found, notes = measured(folder, sandbox, repeat=1)
    assert ("no network" in sandbox.description) != ("WITH the network" in sandbox.description)
    assert bool(found) == ("WITH the network" in sandbox.description), notes


def test_a_program_that_does_not_end_is_ended(folder: Path, sandbox: Sandbox) -> None:
    limits = ProgramLimits(0.5, 256 * MIB, 20, 4 * MIB)
    assert "not done within 0.5 s" in outcome(sandbox, folder, "while True:\n    pass\n", limits)


def test_what_a_program_leaves_behind_is_ended(folder: Path, sandbox: Sandbox) -> None:
    mark = f"left-{folder.parent.name}-{sandbox.name}"
    (folder / "a.py").write_text(
        "import os, subprocess, sys\n"
        f"code = 'import time; time.sleep(1000) # {mark}'\n"
        "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
    )
    found, notes = measured(folder, sandbox, repeat=1)
    assert (len(found), notes) == (2, [])
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(mark.encode() in command for command in commands)


def _has_process(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False


def test_a_program_that_kills_what_measures_it_does_not_stay(folder: Path, sandbox: Sandbox) -> None:
    mark = f"stays-{folder.parent.name}-{sandbox.name}"
    program = (
        "import os, signal, subprocess, sys\n"
        f"code = 'import signal; signal.pause() # {mark}'\n"
        "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n"
        "os.execv(sys.executable, [sys.executable, '-c', code])\n"
    )
    assert "what measures it was ended" in outcome(sandbox, folder, program)
    assert not _has_process(mark)


@pytest.mark.timeout(60)
def test_a_program_ends_with_the_command_that_measures_it(folder: Path, sandbox: Sandbox) -> None:
    mark = f"orphan-{folder.parent.name}-{sandbox.name}"
    # Put together by the program, so that it is in no other command line.
    (folder / "a.py").write_text(
        f"import os, sys\nmark = '{mark[:3]}' + '{mark[3:]}'\n"
        "os.execv(sys.executable, [sys.executable, '-c', f'import signal; signal.pause() # {mark}'])\n"
    )
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from rlm_core.measurement.programs import ProgramLimits\n"
        "from rlm_core.measurement.programs.sandbox import SandboxTask, execute, find_sandbox\n"
        f"folder, limits = Path({str(folder)!r}), ProgramLimits(600.0, {256 * MIB}, 20, {4 * MIB})\n"
        "readable = [folder, Path(sys.base_prefix), Path(sys.prefix)]\n"
        "task = SandboxTask([sys.executable, str(folder / 'a.py')], {}, readable, folder, limits)\n"
        f"execute(find_sandbox({sandbox.name!r}), task, [])\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as measurer:
        while not _has_process(mark):
            assert measurer.poll() is None
        measurer.kill()
    while _has_process(mark):
        pass  # until the timeout of this test


def test_bubblewrap_hides_the_home_and_lets_nothing_be_written(folder: Path) -> None:
    if not works("bubblewrap"):
        with pytest.raises(DataError, match="install bubblewrap, or run programs that you trust"):
            find_sandbox("bubblewrap")
        return
    sandbox = find_sandbox("bubblewrap")
    written = folder / "written"
    assert "Read-only file system" in outcome(sandbox, folder, f"open({str(written)!r}, 'w')\n")
    (folder / "a.py").write_text(f"import os\nassert not os.path.exists({str(folder.parent / 'n.txt')!r})\n")
    assert measured(folder, sandbox, repeat=1)[1] == []


def test_limits_alone_say_so() -> None:
    sandbox = find_sandbox("limits")
    assert sandbox.description.startswith("limits alone: ")
    assert "can read and write what you can" in sandbox.description


def test_a_program_that_does_not_compile_is_reported(folder: Path, sandbox: Sandbox) -> None:
    if shutil.which("gcc") is None:
        assert "gcc" in wanted("c")
        return
    (folder / "a.c").write_text("int main(void) { return x; }\n")
    (folder / "b.py").write_text(HOLDS)
    found, [message] = measured(folder, sandbox, repeat=1)
    assert {one.file for one in found} == {"b.py"}
    assert "a.c: does not compile with gcc" in message


def test_a_signal_to_stop_ends_the_run(folder: Path, sandbox: Sandbox) -> None:
    with pytest.raises(KeyboardInterrupt):
        execute(sandbox, SandboxTask(["/bin/sleep", "100"], {}, [], folder, LIMITS), [2])


def test_files_that_are_no_programs_are_reported(folder: Path) -> None:
    (folder / "good.py").write_text("class Solution:\n    pass\n\n\nprint(Solution())\n")
    (folder / "library.py").write_text('"""Doc."""\nimport os\n\n\ndef f():\n    return os\n')
    (folder / "only.js").write_text("const f = function () { return 1; };\nfunction g() {}\n")
    (folder / "NoMain.java").write_text("class NoMain { }\n")
    (folder / "empty.rb").write_text("")
    (folder / "header.h").write_text("int f(void);\n")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "a.js").write_text("console.log(1)\n")
    programs, problems = find_programs(folder, [])
    assert [one.name for one in programs] == ["good.py"]
    assert programs[0].qualname == "Solution"
    assert programs[0].hash == source_hash(programs[0].text, "python")
    assert len(problems) == 4
    for name, reason in (("library.py", "only declares"), ("only.js", "only declares"), ("NoMain", "no class with")):
        assert any(name in problem and reason in problem for problem in problems)
    with pytest.raises(DataError, match="no program in go"):
        make_plan(folder, ["x"], best_sandbox(), sys.executable, ["go"])
    with pytest.raises(DataError, match="no such file or folder"):
        find_programs(folder / "gone", [])


def test_a_main_class_is_found_in_its_package(folder: Path) -> None:
    (folder / "A.java").write_text(PROGRAMS["java"][1])
    (folder / "b.scala").write_text("package deep.down\nobject Other { }\nobject Work extends App { println(1) }\n")
    programs, _ = find_programs(folder, [])
    assert {one.name: one.entry for one in programs} == {"A.java": "shop.A", "b.scala": "deep.down.Work"}


def test_folders_may_be_nested_more_deeply_than_python_recurses(folder: Path) -> None:
    (folder / "a.py").write_text(HOLDS)
    with nested_folders(folder) as deepest:
        (deepest / "b.py").write_text(HOLDS)
        programs, problems = find_programs(folder, [])
        assert [one.path.name for one in programs] == ["a.py", "b.py"]
        assert problems == []
        with pytest.raises(DataError, match="nested too deeply; name a folder"):
            inputs_for([str(folder / "**" / "*.txt")], programs[0].path)


def test_inputs_are_files_folders_and_globs(tmp_path: Path) -> None:
    for name in ("in/a/1.txt", "in/a/2.txt", "in/b/1.txt", "in/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    program = Path("solutions/a.py")

    def names(*patterns: str) -> list[str]:
        return [one.name for one in inputs_for([str(tmp_path / pattern) for pattern in patterns], program)]

    assert names("in/{name}") == ["1.txt", "2.txt"]
    assert names("in/*/1.txt") == ["a/1.txt", "b/1.txt"]
    assert names("in/a/1.txt", "in/a/*.txt") == ["1.txt", "2.txt"]
    assert names("in/a", "in/b/1.txt") == [f"{tmp_path}/in/a/1.txt", "2.txt", f"{tmp_path}/in/b/1.txt"]
    assert names("in") == []
    digests = {one.digest for one in inputs_for([str(tmp_path / "in/*/*")], program)}
    assert len(digests) == 3


def test_measurements_of_programs_are_kept_exported_and_taken_in(folder: Path, tmp_path: Path) -> None:
    (folder / "a.py").write_text(HOLDS)
    (folder.parent / "m.txt").write_text("2000\n")
    sandbox = best_sandbox()
    plan = make_plan(folder, [str(tmp_path / "*.txt")], sandbox, sys.executable, (), LIMITS, 2)
    store = Store(tmp_path / "s.sqlite3")
    result = run_plan(plan, "a processor", store.add, lambda text: None)
    assert (result.programs, result.pairs, result.failed) == (1, 2, 0)
    found = newest(store.all(["solutions"]))
    assert sorted((one.workload["input"], one.metric) for one in found) == [
        (name, metric) for name in ("m.txt", "n.txt") for metric in ("latency", "memory")
    ]
    labels = to_labels(found)
    assert len(labels) == 2
    back = sorted(from_labels(("here", row) for row in labels), key=lambda one: (one.workload["input"], one.metric))
    assert [(one.kind, one.language) for one in back] == [("program", "python")] * 4
    assert with_source(labels, found) == 0
    assert [row["text"] for row in labels] == [HOLDS] * 2
    (folder / "a.py").write_text(HOLDS + "print(2)\n")
    again = to_labels(found)
    assert with_source(again, found) == 2


def test_a_store_of_before_programs_is_carried_over(tmp_path: Path) -> None:
    from tests.rlm_core.measurement.test_store import measurement

    store = Store(tmp_path / "m.sqlite3")
    store.add([measurement()])
    with sqlite3.connect(store.path) as connection:
        for column in ("language", "cpu_score", "sizes", "sized", "first"):
            connection.execute(f"ALTER TABLE measurement DROP COLUMN {column}")
        connection.execute("DROP TABLE text")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert store.all() == [measurement()]
    program = measurement(kind="program", language="go", qualname="main", source_hash="a" * 32)
    store.add([program])
    assert sorted(store.all(), key=lambda one: one.language) == [program, measurement()]
