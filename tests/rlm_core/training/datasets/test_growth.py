"""Labels of growth and git repositories -> solutions with stated classes, without the statement in the text."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.growth import SCHEMA, GrowthBuilder, read_growth
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.datasets.splits import split_of

pytestmark = pytest.mark.extras

TWO = """# Time:  O(n)
# Space: O(1)
class Solution(object):
    def f(self, xs):
        return max(xs)  # O(n) again


# Time:  O(nlogn)
# Space: O(n)
class Solution2(object):
    def f(self, xs):
        return sorted(xs)[-1]
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A source cache with an empty bare repository of ``someone/solutions``."""
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "someone+solutions" / "repo"], check=True)
    return tmp_path


def add(cache: Path, content: str) -> str:
    """Put a blob into the repository; its id."""
    command = ["git", f"--git-dir={cache / 'someone+solutions' / 'repo'}", "hash-object", "-w", "--stdin"]
    return subprocess.run(command, input=content, capture_output=True, text=True, check=True).stdout.strip()


def label(blob: str, first: int, last: int, time: str, space: str | None, **changes: Any) -> dict[str, Any]:
    fields = {"repo": "someone/solutions", "path": "a.py", "blob": blob, "slug": "two-sum", "language": "python"}
    lines = {"first_line": first, "last_line": last, "time_class": time, "space_class": space}
    return fields | lines | changes


def builder(cache: Path, *labels: dict[str, Any]) -> GrowthBuilder:
    path = cache / "labels.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in labels))
    return GrowthBuilder(path, cache, download=False)


def test_each_section_of_a_file_is_a_row_without_its_statement(cache: Path) -> None:
    blob = add(cache, TWO)
    rows = list(builder(cache, label(blob, 1, 7, "O(n)", "O(1)"), label(blob, 8, 12, "O(n log n)", None)).rows())
    assert [(row["time"], row["space"]) for row in rows] == [("n", "1"), ("n log n", None)]
    assert [row["text"].splitlines()[0] for row in rows] == ["class Solution(object):", "class Solution2(object):"]
    for row in rows:
        assert "O(" not in row["text"]
        assert (row["group"], row["split"]) == ("leetcode/two-sum", split_of("leetcode/two-sum"))


def test_problems_that_share_a_text_are_one_group(cache: Path) -> None:
    blob, other = add(cache, TWO), add(cache, TWO.replace("# Time", "# The time"))
    labels = label(blob, 1, 7, "O(n)", "O(1)"), label(other, 1, 7, "O(n)", "O(1)", slug="alpha")
    assert {row["group"] for row in builder(cache, *labels).rows()} == {"leetcode/alpha"}


def test_what_cannot_be_had_is_counted_by_its_reason(cache: Path) -> None:
    blob = add(cache, TWO)
    made = builder(
        cache,
        label(blob, 1, 7, "O(n)", "O(1)"),
        label("0" * 40, 1, 7, "O(n)", "O(1)"),
        label(blob, 1, 2, "O(n)", "O(1)"),
        label(blob, 1, 7, "O(n)", "O(1)", language="cobol"),
        label(blob, 1, 7, "O(n)", "O(1)", repo="no/where"),
    )
    assert len(list(made.rows())) == 1
    assert made.report().left_out == {
        "blob not in the repository": 1,
        "empty solution": 1,
        "unknown language cobol": 1,
        "repository not found": 1,
    }


def test_a_data_set_is_read_by_split_and_other_files_are_refused(cache: Path) -> None:
    blob, out = add(cache, TWO), cache / "growth.parquet"
    write_rows(builder(cache, label(blob, 1, 7, "O(n + weird)", "O(1)")).rows(), out, SCHEMA)
    split = split_of("leetcode/two-sum")
    assert read_growth(out, [split])["time"].to_pylist() == ["other"]
    assert not read_growth(out, ["val" if split != "val" else "cal"]).num_rows
    with pytest.raises(DataError):
        read_growth(cache / "labels.jsonl")
