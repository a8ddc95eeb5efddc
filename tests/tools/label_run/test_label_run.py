"""The run that makes labels of growth: a package's own environment and tests, one result per package, a fixed split."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.measurement.functions import run as suite
from rlm_core.measurement.functions.recordings import read_recordings

from tools.label_run import __main__ as label_run
from tools.label_run import collect, measuring
from tools.label_run.environment import Environment, Package, PackageError, find_tests, installed_modules, prepare
from tools.label_run.measuring import FORMAT
from tools.label_run.split import is_unopened

pytestmark = pytest.mark.timeout(300)

CODE = "def total(items):\n    result = 0\n    for item in items:\n        result += item\n    return result\n"
TESTS = "from shapes import total\n\n\ndef test_total():\n    assert total(list(range(50))) == 1225\n"


def test_the_list_names_other_packages_than_the_labels_and_its_split_is_fixed() -> None:
    packages = tomllib.loads(label_run.LIST.read_text(encoding="utf-8"))
    assert all(Package.read(name, entry).version for name, entry in packages.items())
    labels = ("scaled.jsonl.gz", "scaled_test.jsonl.gz")
    known: set[str] = set()
    for path in Path("model_core/labels").glob("*.jsonl.gz"):
        if path.name in labels:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            known |= {json.loads(line)["package"].lower() for line in file}
    assert not known & set(packages)
    read = [Package.read(name, entry) for name, entry in packages.items()]
    unopened = [package for package in read if package.is_unopened]
    for name, expected in zip(labels, (False, True), strict=True):
        with gzip.open(Path("model_core/labels") / name, "rt", encoding="utf-8") as file:
            measured = {json.loads(line)["package"] for line in file}
        assert measured <= {package.name for package in read if package.is_unopened is expected}
    assert 0.15 < len(unopened) / len(packages) < 0.25
    assert is_unopened("Ruamel.YAML") == is_unopened("ruamel-yaml")


def prepared(folder: Path) -> Environment:
    """A package with tests, which this interpreter can import."""
    root = folder / "source"
    (root / "tests").mkdir(parents=True)
    (root / "shapes.py").write_text(CODE)
    (root / "tests" / "test_shapes.py").write_text(TESTS)
    (root / "conftest.py").write_text(
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent))\n"
    )
    return Environment(Path(sys.executable), ("shapes",), root, ("tests",))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a run whose packages need no installation."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(measuring, "_PYTEST", ("-q", "-p", "no:cacheprovider"))
    monkeypatch.setattr(label_run, "make_base", lambda work, python: work)
    (tmp_path / "list.toml").write_text(
        'good = { version = "1", unopened = false }\nbad = { version = "2", unopened = true }\n'
    )
    return tmp_path


def start(work: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    given = ["--work", work / "work", "--results", work / "results", "--unopened", work / "unopened"]
    monkeypatch.setattr(sys, "argv", ["label_run", *map(str, given), "--list", str(work / "list.toml"), *arguments])
    label_run.main()


def rows_of(path: Path) -> list[dict[str, object]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_package_has_one_result_and_is_not_measured_again(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def prepare(package: Package, folder: Path, base: Path, log: object) -> Environment:
        asked.append(package.name)
        if package.name == "bad":
            raise PackageError("no source distribution")
        return prepared(folder)

    monkeypatch.setattr(measuring, "prepare", prepare)
    start(work, monkeypatch)
    head, *functions = rows_of(work / "results" / "good.jsonl.gz")
    assert (head["format"], head["package"], head["version"], head["passed"]) == (FORMAT, "good", "1", 1)
    [row] = functions
    assert (row["module"], row["qualname"], row["firstlineno"], row["why"]) == ("shapes", "total", 1, "")
    points = row["points"]
    assert isinstance(points, list)
    assert [point["sizes"]["items"] for point in points] == [50, 150, 500, 1500, 5000, 15000, 50000]
    assert points[-1]["seconds"] > 20 * points[0]["seconds"]
    assert CODE not in json.dumps(functions)
    [failed] = rows_of(work / "unopened" / "bad.jsonl.gz")
    assert failed["failed"] == "no source distribution"
    out = capsys.readouterr().out
    assert "good: 1 curves of 1 functions" in out
    assert "bad: unopened" in out
    start(work, monkeypatch)
    assert asked == ["good", "bad"]
    start(work, monkeypatch, "--redo", "--only", "bad")
    assert asked == ["good", "bad", "bad"]


def test_results_of_another_format_and_broken_ones_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    assert not label_run.is_done(path)
    path.write_bytes(b"\x1f\x8b broken")
    assert not label_run.is_done(path)
    for number in (FORMAT, FORMAT - 1):
        with gzip.open(path, "wt") as file:
            file.write(json.dumps({"format": number}) + "\n")
        assert label_run.is_done(path) == (number == FORMAT)


def test_tests_and_modules_are_found(tmp_path: Path) -> None:
    root, site = tmp_path / "root", tmp_path / "site"
    (root / "shapes").mkdir(parents=True)
    info = site / "Sha_pes-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text(
        "shapes/__init__.py,,\nshapes/area.py,,\nhelper.py,,\ntests/test_it.py,,\n../../bin/shapes.py,,\n_fast.so,,\n"
    )
    assert installed_modules(site, "sha-pes") == ("shapes", "helper")
    with pytest.raises(PackageError, match="no record"):
        installed_modules(site, "other")
    with pytest.raises(PackageError, match="no tests"):
        find_tests(root, site, ("shapes",))
    (site / "shapes").mkdir()
    (site / "shapes" / "test_area.py").touch()
    assert find_tests(root, site, ("shapes",)) == ("--pyargs", "shapes")
    (root / "test_all.py").touch()
    assert find_tests(root, site, ("shapes",)) == ("test_all.py",)
    (root / "tests" / "unit").mkdir(parents=True)
    (root / "tests" / "unit" / "area_test.py").touch()
    assert find_tests(root, site, ("shapes",)) == ("tests",)


def test_no_test_begins_after_the_limit_of_the_suite(tmp_path: Path, work: Path) -> None:
    made = prepared(tmp_path / "package")
    tests = "import shapes, time\n\ndef spend():\n    began = time.process_time()\n"
    tests += "    while time.process_time() < began + .3:\n        pass\n"
    tests += "".join(f"def test_{n}():\n    spend()\n    shapes.total([1])\n" for n in range(20))
    (made.folder / "tests" / "test_shapes.py").write_text(tests)
    place = tmp_path / "recordings"
    place.mkdir()
    plan = suite.SuitePlan(str(made.python), ("-q", "tests"), made.folder, made.modules, ("latency",), seconds=0.5)
    with (tmp_path / "out.txt").open("wb") as output:
        suite.run(plan, place, lambda note: None, output)
    begun = [test for one in read_recordings(place) for test in one.tests]
    assert 1 <= len(begun) <= 3


def test_a_repository_is_checked_out_at_its_commit_and_nothing_of_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = tmp_path / "work" / "sources" / "me+shapes" / "repo"
    made = prepared(tmp_path / "package").folder
    (made / "picture.png").write_bytes(b"\x89PNG")
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], [*name, "commit", "-qm", "one"]):
        subprocess.run(["git", *arguments], cwd=made, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=made, check=True, capture_output=True, text=True).stdout
    origin.parent.mkdir(parents=True)
    (made / ".git").rename(origin)
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    entry = {"version": commit.strip(), "repository": "me/shapes", "modules": ["shapes"], "select": ["tests"]}
    with (tmp_path / "log").open("w") as log:
        found = prepare(Package.read("shapes", entry), tmp_path / "work" / "shapes", base, log)
    assert (found.modules, found.select) == (("shapes",), ("tests",))
    assert (found.folder / "shapes.py").read_text() == CODE
    assert not (found.folder / "picture.png").exists()
    with pytest.raises(DataError, match="not a full commit"), (tmp_path / "log").open("w") as log:
        prepare(Package.read("other", entry | {"version": "main"}), tmp_path / "work" / "other", base, log)


def test_labels_are_the_functions_with_points_in_the_order_of_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b", "a"):
        rows = [
            {"package": name, "version": "1", "processor": "P"},
            {"qualname": "f", "points": [{"factor": 1}], "why": "", "recursive": False},
            {"qualname": "g", "points": [], "why": "is a generator"},
        ]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    monkeypatch.setattr(sys, "argv", ["collect", str(tmp_path), "--out", str(tmp_path / "labels.gz")])
    collect.main()
    assert "2 functions of 2 packages" in capsys.readouterr().out
    assert rows_of(tmp_path / "labels.gz") == [
        {"package": name, "version": "1", "qualname": "f", "points": [{"factor": 1}], "device": "P"}
        for name in ("a", "b")
    ]


def test_the_tool_explains_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.label_run", "--help"], capture_output=True, text=True, check=True
    )
    assert "--unopened" in done.stdout
