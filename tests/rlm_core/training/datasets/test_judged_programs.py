"""Labels of judges and a git repository -> rows: solutions by blob, grouped by problem."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.queries.judges import JUDGES
from rlm_core.training.datasets.judged_programs import LABELS, JudgedProgramBuilder
from rlm_core.training.datasets.splits import split_of

JAVA = "class Solution {\n    int f() { return 1; }\n}\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A source cache with an empty bare repository of ``someone/solutions``."""
    repository = tmp_path / "someone+solutions" / "repo"
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
    return tmp_path


def add(cache: Path, content: str) -> str:
    """Put a blob into the repository; its id."""
    command = ["git", f"--git-dir={cache / 'someone+solutions' / 'repo'}", "hash-object", "-w", "--stdin"]
    done = subprocess.run(command, input=content, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def label(blob: str, slug: str = "two-sum", **changes: Any) -> dict[str, Any]:
    fields = {
        "repo": "someone/solutions",
        "path": f"{slug}/a.java",
        "blob": blob,
        "slug": slug,
        "language": "java",
        "runtime_ms": 3,
        "memory_mb": 40.5,
        "date": "2024-05-01",
    }
    return fields | changes


def boj_label(blob: str, **changes: Any) -> dict[str, Any]:
    fields = {
        "repo": "someone/solutions",
        "path": "1000. A+B/A+B.py",
        "blob": blob,
        "problem": "1000",
        "language": "python",
        "time_ms": 32,
        "memory_kb": 31120,
        "date": "2023-05-01",
    }
    return fields | changes


def atcoder_label(blob: str, **changes: Any) -> dict[str, Any]:
    fields = {
        "repo": "someone/solutions",
        "path": "atcoder.jp/abc087/abc087_b/Main.py",
        "blob": blob,
        "problem": "abc087_b",
        "contest": "abc087",
        "language": "python",
        "compiler": "PyPy3 (7.3.0)",
        "variant": "pypy",
        "time_ms": 61,
        "date": "2021-02-03",
    }
    return fields | changes


def build(
    cache: Path, *labels: dict[str, Any], kind: str = "leethub", **options: Any
) -> tuple[list[dict[str, Any]], JudgedProgramBuilder]:
    path = cache / "labels.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in labels))
    builder = JudgedProgramBuilder(kind, path, cache, download=False, **options)
    return list(builder.rows()), builder


def test_a_solution_gives_a_row_a_metric_in_si_units(cache: Path) -> None:
    blob = add(cache, JAVA)
    rows, builder = build(cache, label(blob))
    assert {row["metric"]: row["value"] for row in rows} == {"latency": pytest.approx(0.003), "memory": 40.5e6}
    for row in rows:
        assert row["text"] == JAVA
        assert (row["basis"], row["language"], row["device"], row["callees"]) == ("program", "java", "leetcode", [])
        assert row["workload"] == {"judge": "leetcode", "date": "2024-05-01"}
        assert row["group"] == row["family"] == "leetcode/two-sum"
        assert row["split"] == split_of("leetcode/two-sum")
        assert row["repository"] == "someone/solutions"
        assert row["source"] == f"someone/solutions@{blob}:two-sum/a.java"
    assert (builder.report().rows, builder.report().units, builder.report().left_out) == (2, 1, {})


def test_kilobytes_of_boj_are_of_1024_bytes(cache: Path) -> None:
    rows, _ = build(cache, boj_label(add(cache, "print(1)\n")), kind="boj")
    assert {row["metric"]: row["value"] for row in rows} == {"latency": pytest.approx(0.032), "memory": 31120 * 1024}
    assert {row["device"] for row in rows} == {"boj"}
    assert rows[0]["workload"] == {"judge": "boj", "date": "2023-05-01"}
    assert rows[0]["group"] == "boj/1000"


@pytest.mark.parametrize(("kind", "make", "step"), [("boj", boj_label, 4e-3), ("atcoder", atcoder_label, 1e-3)])
def test_a_run_time_below_the_clock_is_at_the_floor(cache: Path, kind: str, make: Any, step: float) -> None:
    labels = [make(add(cache, f"x = {time}\n"), time_ms=time) for time in (0, round(step * 1e3), round(step * 1e4))]
    rows, _ = build(cache, *labels, kind=kind)
    found = [row["value"] for row in rows if row["metric"] == "latency"]
    assert found == [step, step, pytest.approx(10 * step)]


def test_atcoder_gives_run_time_alone_and_the_runtime_of_python(cache: Path) -> None:
    labels = [
        atcoder_label(add(cache, "a = 1\n")),
        atcoder_label(add(cache, "int main() {}\n"), language="cpp", variant=None),
    ]
    rows, _ = build(cache, *labels, kind="atcoder")
    assert [(row["metric"], row["workload"].get("runtime")) for row in rows] == [("latency", "pypy"), ("latency", None)]


def test_the_version_of_a_compiler_is_not_a_runtime(cache: Path) -> None:
    rows, _ = build(cache, boj_label(add(cache, "int main() {}\n"), language="cpp", variant="c++20"), kind="boj")
    assert "runtime" not in rows[0]["workload"]


def test_every_kind_of_labels_is_of_a_known_judge() -> None:
    assert sorted(entry.judge for entry in LABELS.values()) == sorted(JUDGES)


def test_what_cannot_be_had_is_counted_by_its_reason(cache: Path) -> None:
    blob, empty = add(cache, JAVA), add(cache, " \n")
    rows, builder = build(
        cache,
        label(blob),
        label("0" * 40),
        label(empty),
        label(add(cache, "program main."), language="cobol"),
        label(blob, repo="no/where"),
        label("1" * 40, repo="no/where"),
    )
    assert len(rows) == 2
    report = builder.report()
    assert report.left_out == {
        "blob not in the repository": 1,
        "empty solution": 1,
        "unknown language cobol": 1,
        "repository not found": 2,
    }
    assert report.examples["repository not found"] == ["no/where"]
    assert report.examples["blob not in the repository"] == [f"someone/solutions@{'0' * 40}"]


def test_problems_that_share_a_text_are_one_group(cache: Path) -> None:
    same, other = add(cache, "// mine\n" + JAVA), add(cache, JAVA.replace("1", "2"))
    rows, _ = build(cache, label(add(cache, JAVA), "b-problem"), label(same, "a-problem"), label(other, "c-problem"))
    assert [row["group"] for row in rows[::2]] == ["leetcode/a-problem", "leetcode/a-problem", "leetcode/c-problem"]


def test_the_same_text_in_two_languages_joins_nothing(cache: Path) -> None:
    text = "x = 1\n"
    rows, _ = build(
        cache,
        label(add(cache, text), "a", language="ruby"),
        label(add(cache, text + "\n"), "b", language="python"),
    )
    assert {row["group"] for row in rows} == {"leetcode/a", "leetcode/b"}


def test_only_the_wanted_languages_are_built(cache: Path) -> None:
    blob = add(cache, JAVA)
    rows, _ = build(cache, label(blob), label(blob, language="go"), languages=frozenset({"java"}))
    assert {row["language"] for row in rows} == {"java"}


def test_a_second_label_of_a_blob_is_counted_as_left_out(cache: Path) -> None:
    blob = add(cache, JAVA)
    rows, builder = build(cache, label(blob), label(blob, date="2024-06-01", path="b.java", runtime_ms=5))
    assert [row["value"] for row in rows if row["metric"] == "latency"] == [0.003]
    assert builder.report().left_out == {"blob with a label already": 1}


def test_a_text_that_is_no_utf_8_is_still_read(cache: Path) -> None:
    command = ["git", f"--git-dir={cache / 'someone+solutions' / 'repo'}", "hash-object", "-w", "--stdin"]
    blob = subprocess.run(command, input=b"// \xff\n" + JAVA.encode(), capture_output=True, check=True).stdout
    rows, _ = build(cache, label(blob.decode().strip()))
    assert rows[0]["text"] == "// \ufffd\n" + JAVA


@pytest.mark.parametrize("name", ["../etc", "a/b/c", "-x/y", "a", "a/b; rm"])
def test_a_repository_name_cannot_become_a_path_or_an_option(cache: Path, name: str) -> None:
    with pytest.raises(DataError, match="not a repository name of the form OWNER/NAME"):
        build(cache, label("0" * 40, repo=name))


@pytest.mark.parametrize("row", [{"package": "x", "version": "1"}, 3, {"repo": "a/b", "blob": "0" * 40}])
def test_labels_of_another_kind_are_reported(tmp_path: Path, row: object) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"labels\.jsonl:1: .* is missing; is this a file of LeetCode labels"):
        JudgedProgramBuilder("leethub", path, tmp_path)
