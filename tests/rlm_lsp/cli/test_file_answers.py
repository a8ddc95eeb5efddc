"""``rlm-lsp predict`` with stored answers and in several processes: the same bytes as without, and always current."""

from __future__ import annotations

import sqlite3
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_core.inference import stored_predictions
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.entry_store import VARIABLE
from rlm_lsp.cli import file_answers, options, predict_files, workers
from rlm_lsp.cli.app import app
from rlm_lsp.sources import SourceFile

from tests.paths import REPOSITORY

pytestmark = pytest.mark.timeout(300)
EXAMPLES = REPOSITORY / "examples"
STDLIB = Path(textwrap.__file__)
MAIN = "from .helper import work\n\ndef run(n):\n    return [work(n) for _ in range(n)]\n"
HELPER = "def work(n):\n    return sum(range(n))\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stores; a process is worth starting for any work, and nothing was measured."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(workers, "_BYTES_PER_JOB", 1)
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    for name, text in {"__init__": "", "main": MAIN, "helper": HELPER, "inner/__init__": ""}.items():
        (package / f"{name}.py").write_text(text)
    return package


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are analysed in this process."""
    names: list[str] = []
    analyse = predict_files._analysed

    def note(analyser: Analyser, source: SourceFile) -> object:
        names.append(source.path.name)
        return analyse(analyser, source)

    monkeypatch.setattr(predict_files, "_analysed", note)
    return names


def predict(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def current(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The rows of a path without any store."""
    with monkeypatch.context() as context:
        context.setenv(VARIABLE, "off")
        return predict(path, "--jobs", "1", "--format", "jsonl").stdout


def test_a_hit_prints_what_a_miss_prints_and_processes_what_one_prints(
    analysed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(form: str, jobs: str) -> Result:
        return predict(EXAMPLES, STDLIB, "--format", form, "--jobs", jobs)

    with monkeypatch.context() as context:
        context.setenv(VARIABLE, "off")
        alone = {form: printed(form, "1") for form in ("table", "jsonl", "json")}
    assert len(analysed) == 3 * 10
    analysed.clear()
    several = printed("table", "2")
    hits = {form: printed(form, "1") for form in alone}
    assert analysed == []
    for form, result in [("table", several), *hits.items()]:
        assert result.stdout_bytes == alone[form].stdout_bytes
        assert result.exit_code == alone[form].exit_code == 0
        # All but the seconds.
        assert result.stderr.partition(" in ")[0] == alone[form].stderr.partition(" in ")[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda package: (package / "main.py").write_text(MAIN + "\n"),
        lambda package: (package / "helper.py").write_text(HELPER.replace("sum", "sorted")),
        lambda package: (package / "helper.py").unlink(),
        lambda package: (package / "inner" / "other.py").write_text("def other():\n    return 1\n"),
        lambda package: (package / "__init__.py").unlink(),
    ],
)
def test_a_file_is_analysed_again_where_it_or_its_package_has_changed(
    package: Path, analysed: list[str], change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(package / "main.py")
    predict(package / "main.py")
    assert analysed == ["main.py"]
    change(package)
    assert predict(package / "main.py", "--format", "jsonl").stdout == current(package / "main.py", monkeypatch)
    assert analysed[:2] == ["main.py", "main.py"]


def test_a_package_with_a_link_to_a_folder_is_analysed_each_time(
    package: Path, tmp_path: Path, analysed: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (package / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    predict(package / "main.py")
    predict(package / "main.py")
    assert analysed == ["main.py", "main.py"]


def test_other_questions_have_other_answers(
    package: Path, analysed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(package / "main.py")
    predict(package / "main.py", "--device", "h100")
    predict(package, "--jobs", "1")
    monkeypatch.chdir(package)
    rows = predict("main.py", "--format", "jsonl").stdout
    assert '"file": "main.py"' in rows
    assert analysed.count("main.py") == 4
    monkeypatch.setattr(stored_predictions, "version", lambda: "other")
    predict("main.py")
    assert analysed.count("main.py") == 5


def test_errors_notes_and_failures_are_found_again(package: Path, analysed: list[str]) -> None:
    (package / "bad.py").write_text("def (:\n")
    (package / "partly.py").write_text("def good(n):\n    return n\n\n\ndef bad(n):\n    return )\n")
    first, second = (predict(package, "--jobs", "1") for _ in range(2))
    assert (first.exit_code, second.exit_code) == (2, 2)
    assert first.stderr.splitlines()[:-1] == second.stderr.splitlines()[:-1]
    assert len(first.stderr.splitlines()) == 3
    assert (analysed.count("bad.py"), analysed.count("partly.py")) == (2, 1)


def test_what_was_measured_is_looked_up_each_time(
    package: Path, analysed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (package.parent / ".rlm").mkdir()
    monkeypatch.chdir(package.parent)
    predict("package/main.py")
    predict("package/main.py")
    assert analysed == ["main.py", "main.py"]
    predict("package/main.py", "--no-measured")
    predict("package/main.py", "--no-measured")
    assert analysed == ["main.py", "main.py", "main.py"]
    assert not options.open_store(None).path.exists(), "else this test is about something else"


@pytest.mark.parametrize("damage", ["UPDATE entries SET entry = substr(entry, 2)", "UPDATE entries SET entry = 1", ""])
def test_damaged_answers_are_made_again(package: Path, folder: Path, analysed: list[str], damage: str) -> None:
    first = predict(package / "main.py", "--format", "json")
    if damage:
        with sqlite3.connect(folder / file_answers.FILE) as connection:
            assert connection.execute(damage).rowcount == 1
    else:
        (folder / file_answers.FILE).write_bytes(b"not a database" * 1000)
    for _ in range(2):
        again = predict(package / "main.py", "--format", "json")
        assert (again.stdout, again.exit_code) == (first.stdout, 0)
    assert len(analysed) >= 2
