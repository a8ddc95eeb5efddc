"""Files in, findings out: budgets of comments and configurations, regressions, and flat memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import ModelError
from rlm_core.inference.predictor import Predictor, WithoutComparison
from rlm_lsp.findings.checked_files import find_files
from rlm_lsp.findings.checker import Checker, release_memory
from rlm_lsp.findings.formats import LocatedFinding

from .support import LengthPredictor, commit, git, never, write

# 31 characters: 31 µs, 31 KiB.
FUNCTION = "def f(n):\n    return sum(n) + 1\n"
LONGER = "def f(n):\n    return sum(n) + sum(n) + sum(n) + sum(n) + 1\n"


def check(
    folder: Path, load: Callable[[], Predictor] = LengthPredictor, diff: str | None = None
) -> tuple[list[LocatedFinding], Checker]:
    checker = Checker(find_files([folder], diff=diff), load, revision=diff or "HEAD")
    return list(checker.run(lambda done, total: None)), checker


def places(found: list[LocatedFinding]) -> list[tuple[str, int, str, str]]:
    return [
        (entry.location.name, entry.location.region.line, entry.finding.code, entry.finding.qualname) for entry in found
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    return tmp_path


def test_comments_and_globs_are_held_against_predictions(folder: Path) -> None:
    write(
        folder,
        {
            "pyproject.toml": '[tool.rlm-lsp.budgets]\n"src/**" = "memory < 1 KiB, latency < 1 s"\n',
            "src/a.py": "# µ\n# rlm: latency < 1 µs\n" + FUNCTION,
            "b.py": "# rlm: latency < 1 ms\n" + FUNCTION,
        },
    )
    found, checker = check(folder)
    assert places(found) == [("src/a.py", 3, "over-budget", "f"), ("src/a.py", 3, "over-budget", "f")]
    assert [entry.finding.metric for entry in found] == ["latency", "memory"]
    assert [(place.name, place.region.line) for entry in found for _, place in entry.related] == [
        ("src/a.py", 2),
        ("pyproject.toml", 2),
    ]
    assert (checker.files, checker.units, checker.with_budget, checker.errors) == (2, 2, 2, 0)


def test_malformed_budgets_are_reported_once_and_without_the_model(folder: Path) -> None:
    write(
        folder,
        {
            "rlm-lsp.toml": '[budgets]\n"*.py" = "latency < 1"\n',
            "a.py": FUNCTION,
            "b.py": "# rlm: memory < 1 MB\n" + FUNCTION,
        },
    )
    found, _ = check(folder, never)
    assert places(found) == [("rlm-lsp.toml", 2, "malformed-budget", ""), ("b.py", 1, "malformed-budget", "f")]
    assert found[0].location.file.endswith("rlm-lsp.toml")


def test_units_without_a_budget_are_not_queried(folder: Path) -> None:
    write(folder, {"a.py": FUNCTION, "b.py": "# rlm: ignore\n" + FUNCTION, "c.go": "package p\nfunc f() {}\n"})
    found, checker = check(folder, never)
    assert found == []
    assert (checker.files, checker.with_budget) == (3, 0)


def test_what_the_model_abstains_from_is_counted(folder: Path) -> None:
    write(folder, {"a.py": "# rlm: latency < 1 ns\ndef odd(): pass\n"})
    found, checker = check(folder)
    assert found == []
    assert checker.abstained == {"the model does not produce a number for this text": 1}


def test_settings_of_the_folder_count(folder: Path) -> None:
    config = '[budgets]\n"*" = "latency < 28 µs"\n'
    write(folder, {"rlm-lsp.toml": config, "a.py": FUNCTION, "tests/b.py": FUNCTION})
    assert places(check(folder)[0]) == []
    write(folder, {"rlm-lsp.toml": "budget-confidence = 0.55\nexclude = ['tests/**']\nspeling = 1\n" + config})
    found, checker = check(folder)
    assert places(found) == [("a.py", 1, "over-budget", "f")]
    assert [entry.finding.severity for entry in found] == ["information"]
    [problem] = checker.settings.problems
    assert "unknown setting `speling`" in problem
    sure = Checker(find_files([folder]), LengthPredictor, confidence=0.9)
    assert list(sure.run(lambda done, total: None)) == []


def test_configured_devices_that_no_unit_has_are_reported(folder: Path) -> None:
    write(folder, {"rlm-lsp.toml": '[budgets]\n"*" = "latency < 1 s, latency < 1 s on no-gpu"\n', "a.py": FUNCTION})
    assert check(folder)[1].unknown_devices == ["no-gpu"]


def test_only_regressions_of_changed_units_are_reported(folder: Path) -> None:
    other = "# rlm: memory < 1 KiB\ndef same(n):\n    return n\n\n"
    commit(folder, {"a.py": other + FUNCTION, "b.py": other})
    write(folder, {"a.py": other + LONGER + "\n\n# rlm: latency < 1 µs\ndef new(n):\n    return n\n"})
    found, checker = check(folder, diff="HEAD")
    assert [(entry.finding.code, entry.finding.qualname, entry.finding.metric) for entry in found] == [
        ("regression", "f", "latency"),
        ("over-budget", "new", "latency"),
    ]
    assert "is predicted to grow about 1.9× since HEAD" in found[0].finding.message
    assert (checker.compared, checker.files) == (1, 1)


def test_a_unit_that_ignores_a_metric_does_not_regress_in_it(folder: Path) -> None:
    commit(folder, {"a.py": FUNCTION})
    write(folder, {"a.py": "# rlm: ignore latency\n" + LONGER})
    found, _ = check(folder, diff="HEAD")
    assert [entry.finding.metric for entry in found] == ["memory"]


def test_a_changed_callee_in_another_file_is_seen_as_it_was(folder: Path) -> None:
    caller = "from .b import f\n\ndef g(n):\n    return f(n)\n"
    commit(folder, {"p/__init__.py": "", "p/a.py": caller, "p/b.py": FUNCTION})
    write(folder, {"p/a.py": caller + "\n\ndef h(n):\n    return n\n", "p/b.py": LONGER})
    _, checker = check(folder, diff="HEAD")
    assert checker.compared == 2, "f, and g because of f"
    git(folder, "checkout", "--quiet", "p/b.py")
    assert check(folder, diff="HEAD")[1].compared == 0


def test_a_model_that_cannot_compare_is_refused(folder: Path) -> None:
    class Plain(LengthPredictor):
        compare = WithoutComparison.compare  # type: ignore[assignment]

    commit(folder, {"a.py": FUNCTION})
    write(folder, {"a.py": LONGER})
    with pytest.raises(ModelError, match="cannot compare two texts"):
        check(folder, Plain, diff="HEAD")


def test_files_that_cannot_be_read_are_noted_and_named_ones_are_errors(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"bad.py": b"x = '\xff'\n", "empty.py": "", "a.py": FUNCTION})
    _, checker = check(folder)
    assert (checker.errors, checker.files) == (0, 1)
    assert "not checked: " in capsys.readouterr().err
    named = Checker(find_files([folder / name for name in ("bad.py", "empty.py", "missing.py")]), never)
    assert list(named.run(lambda done, total: None)) == []
    assert (named.errors, named.files) == (2, 0)


def test_the_model_is_queried_in_batches_across_files(folder: Path) -> None:
    write(folder, {"rlm-lsp.toml": '[budgets]\n"*" = "latency < 1 µs"\n'})
    text = "".join(FUNCTION.replace("f(", f"f{number}(") for number in range(30))
    write(folder, {f"{number:02}.py": text for number in range(20)})
    predictor = LengthPredictor()
    found, checker = check(folder, lambda: predictor)
    assert len(found) == checker.units == 600
    assert predictor.batches == [90, 90, 90, 90, 90, 90, 60]
    assert [entry.location.name for entry in found] == sorted(entry.location.name for entry in found)


def test_a_large_file_is_queried_in_parts(folder: Path) -> None:
    text = "".join(FUNCTION.replace("f(", f"f{number}(") for number in range(300))
    write(folder, {"rlm-lsp.toml": '[budgets]\n"*" = "latency < 1 µs"\n', "a.py": text})
    predictor = LengthPredictor()
    found, _ = check(folder, lambda: predictor)
    assert predictor.batches == [128, 128, 44]
    assert [entry.location.region.line for entry in found] == sorted(entry.location.region.line for entry in found)


def test_fingerprints_do_not_move_with_lines(folder: Path) -> None:
    text = "# rlm: latency < 1 µs\n" + FUNCTION
    write(folder, {"a.py": text})
    [before] = check(folder)[0]
    write(folder, {"a.py": "import os\n\n\n" + text.replace("latency <", "latency   <=")})
    [after] = check(folder)[0]
    assert before.fingerprint == after.fingerprint
    assert replace(before.location, region=after.location.region) == after.location


_BLOCK, _BLOCKS = 100_000, 1_000  # small enough for the heap, 95 MiB together


def resident() -> float:
    """The resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def test_freed_memory_is_given_back_where_the_allocator_can() -> None:
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"):
        release_memory()
        return
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    blocks = [libc.malloc(_BLOCK) for _ in range(_BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, _BLOCK)
    # A block at the end that is still in use keeps all before it.
    for block in blocks[:-1]:
        libc.free(block)
    kept = resident()
    release_memory()
    assert kept - resident() > 60
    libc.free(blocks[-1])
