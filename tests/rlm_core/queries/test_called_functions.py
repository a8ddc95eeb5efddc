"""What units call, as predictors read it: over the package on disk, open texts first, and current after edits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.called_functions import MAX_OF_PACKAGE, sample_of_package
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CalledFunction, Calls, FoundCost, KnownCost, MeasuredCost, Unit

MAIN = "from .other import helper\n\n\ndef f(x):\n    helper()\n    return x.measure_all()\n"
OTHER = "def helper():\n    return 1\n"
DEEP = "class A:\n    def measure_all(self):\n        return 2\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    (folder / "sub").mkdir(parents=True)
    for name, text in {"__init__": "", "main": MAIN, "other": OTHER, "sub/__init__": "", "sub/deep": DEEP}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def calls(analyser: Analyser, path: Path, text: str | None = None, qualname: str = "f") -> Calls:
    source = path.read_bytes() if text is None else text.encode()
    units = analyser.analyse(ParsedSource(source, "python"), path, str(path))
    found = next(unit.code.calls for unit in units if unit.unit.qualname == qualname)
    assert found is not None
    return found


def texts(found: Calls) -> list[str]:
    return [function.text.strip().splitlines()[-1].strip() for function in found.functions()]


def test_calls_lead_to_functions_of_the_whole_package(package: Path) -> None:
    assert texts(calls(Analyser(), package / "main.py")) == ["return 1", "return 2"]


def test_an_edit_of_a_callee_in_an_open_file_changes_what_its_callers_read(package: Path) -> None:
    other = package / "other.py"
    texts_of_editors = {other: ParsedSource(OTHER.encode(), "python")}
    analyser = Analyser(texts_of_editors.get)
    before = calls(analyser, package / "main.py")
    assert calls(analyser, package / "main.py") is before
    texts_of_editors[other] = ParsedSource(OTHER.replace("1", "100").encode(), "python")
    assert texts(calls(analyser, package / "main.py")) == ["return 100", "return 2"]


def test_a_new_class_with_the_called_name_is_a_candidate_once_its_file_is_analysed(package: Path) -> None:
    other = package / "other.py"
    texts_of_editors: dict[Path, ParsedSource] = {}
    analyser = Analyser(texts_of_editors.get)
    calls(analyser, package / "main.py")
    text = OTHER + "\n\nclass B:\n    def measure_all(self):\n        return 3\n"
    texts_of_editors[other] = ParsedSource(text.encode(), "python")
    calls(analyser, other, text, "helper")
    assert texts(calls(analyser, package / "main.py")) == ["return 1", "return 2", "return 3"]


def test_files_that_change_on_disk_count_after_a_refresh(package: Path) -> None:
    analyser = Analyser()
    calls(analyser, package / "main.py")
    (package / "sub" / "deep.py").write_text("class A:\n    pass\n")
    (package / "sub" / "new.py").write_text("class C:\n    def measure_all(self):\n        return 4\n")
    analyser.refresh()
    assert texts(calls(analyser, package / "main.py")) == ["return 1", "return 4"]


class Measurements:
    """What was measured: one cost of one function."""

    def __init__(self, path: Path, qualname: str, cost: FoundCost) -> None:
        self.place, self.cost = (path, qualname), cost

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Nothing to read."""

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        """The cost, at its place."""
        return (self.cost,) if (path, unit.qualname) == self.place else ()

    def functions_in(self, folder: Path) -> dict[Path, list[CalledFunction]]:
        """The function with its cost."""
        path, qualname = self.place
        cost = KnownCost("latency", self.cost.cost.median, self.cost.cost.low, self.cost.cost.high)
        text = f"def {qualname}(): ..."
        return {path: [CalledFunction(text, known=(cost,))]} if path.is_relative_to(folder) else {}


def test_functions_measured_in_other_files_of_the_package_are_read(package: Path) -> None:
    cost = MeasuredCost("latency", 1e-3, 5e-4, 2e-3, 20, 3, "function", "x86-64", "cpython-3.12", "2026-01-01")
    (package.parent / "script.py").write_text(MAIN)
    for place, path, seen in (
        (package / "sub" / "deep.py", package / "main.py", 1),
        (package / "main.py", package / "main.py", 0),
        (package / "main.py", package.parent / "script.py", 0),
        (package.parent / "other.py", package / "main.py", 0),
        (package.parent / "other.py", package.parent / "script.py", 1),
    ):
        analyser = Analyser(measured=Measurements(place, "measure", FoundCost(cost, None)))
        assert len(calls(analyser, path).of_package.functions) == seen
        assert calls(analyser, path).of_package is calls(analyser, path).of_package


def test_of_a_large_package_a_sample_is_read() -> None:
    known = (KnownCost("latency", 1e-3, 1e-3, 1e-3),)
    functions = [CalledFunction(f"def f{number}(): ...", known=known) for number in range(2 * MAX_OF_PACKAGE)]
    sample = sample_of_package(functions)
    assert len(sample.functions) == MAX_OF_PACKAGE
    assert sample == sample_of_package(reversed(functions))
    assert sample.functions != tuple(functions[:MAX_OF_PACKAGE])


@pytest.mark.parametrize("before", [None, "def helper():\n    return 0\n"])
def test_what_was_measured_of_the_present_text_is_known(package: Path, before: str | None) -> None:
    cost = MeasuredCost("latency", 1e-3, 5e-4, 2e-3, 20, 3, "function", "x86-64", "cpython-3.12", "2026-01-01")
    measured = Measurements(package / "other.py", "helper", FoundCost(cost, before))
    known = (KnownCost("latency", 1e-3, 5e-4, 2e-3),) if before is None else ()
    found = calls(Analyser(measured=measured), package / "main.py")
    assert [function.known for function in found.functions()] == [known, ()]


def test_cells_of_a_notebook_call_each_other() -> None:
    cells = Analyser().analyse_cells([b"def f():\n    return g()\n", b"def g():\n    return 1\n"])
    assert cells[0][0].code.calls is not None
    assert texts(cells[0][0].code.calls) == ["return 1"]


def test_functions_that_call_each_other_are_read_without_end(tmp_path: Path) -> None:
    text = "def f():\n    return g()\n\n\ndef g():\n    return f()\n"
    found = calls(Analyser(), tmp_path / "cycle.py", text)
    assert texts(found) == ["return f()"]


def test_the_hash_seed_changes_nothing(package: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom rlm_core.queries.analysis import Analyser\n"
        "from rlm_core.source.units import read_source\npath = Path(sys.argv[1])\n"
        "print([unit.code.calls for unit in Analyser().analyse(read_source(path), path)])\n"
    )
    for number in range(3):
        (package / f"more{number}.py").write_text(
            f"class C{number}:\n    def measure_all(self):\n        return {number}\n"
        )
    found = {
        subprocess.run(
            [sys.executable, "-c", program, str(package / "main.py")],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.replace("_hash", "")
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_a_package_inside_another_may_have_two_names(tmp_path: Path) -> None:
    """Where a folder without `__init__.py` is between them, the outer one's files name the inner one's in full."""
    inner = tmp_path / "outer" / "plain" / "inner"
    inner.mkdir(parents=True)
    for path in (tmp_path / "outer" / "__init__.py", inner / "__init__.py"):
        path.touch()
    (inner / "work.py").write_text("class Work:\n    @classmethod\n    def made(cls):\n        return cls()\n")
    body = "\n\ndef run(self):\n    return Work.made()\n"
    (tmp_path / "outer" / "first.py").write_text(f"from .plain.inner.work import Work{body}")
    (inner / "second.py").write_text(f"from .work import Work{body}")
    analyser, paths = Analyser(), [tmp_path / "outer" / "first.py", inner / "second.py"]
    for path in (*paths, *reversed(paths)):
        assert texts(calls(analyser, path, qualname="run")) == ["return cls()"]
