"""The marker of the first-run notice, and whether anybody is there to read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_lsp.lsp.features.notice import TEXT, in_ci, is_first

pytestmark = pytest.mark.timeout(30)


def test_only_the_first_to_ask_is_first(tmp_path: Path) -> None:
    marker = tmp_path / "new" / "folder" / "notice"
    assert [is_first(marker) for _ in range(3)] == [True, False, False]


def test_a_marker_that_cannot_be_kept_counts_as_seen(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not is_first(tmp_path / "file" / "notice")


@pytest.mark.parametrize(("value", "said"), [("true", True), ("1", True), ("", False), ("0", False), ("False", False)])
def test_ci_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch, value: str, said: bool) -> None:
    monkeypatch.setenv("CI", value)
    assert in_ci() is said


def test_the_notice_is_one_line_without_terms_of_ours() -> None:
    assert "\n" not in TEXT
    assert "inputs like those in a project's tests" in TEXT
