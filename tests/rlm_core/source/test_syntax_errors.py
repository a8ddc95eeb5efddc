"""Which units of a file have syntax errors."""

from __future__ import annotations

import pytest
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.syntax_errors import first_error, without_errors

GOOD = "def good(n):\n    return n\n"


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        (GOOD, True),
        ("def old(n):\n    print n\n", False),
        ("def half(:\n    return 1\n", False),
        # Valid from Python 3.12 and 3.14 on: no error, also where an older Python reads it.
        ("def newer[T](items: list[T]) -> T:\n    return items[0]\n", True),
        ("def newest(f):\n    try:\n        f()\n    except ValueError, TypeError:\n        pass\n", True),
    ],
)
def test_units_with_errors_are_left_out(text: str, is_kept: bool) -> None:
    file = ParsedSource(f"{GOOD}\n\nx = (\n\n\n{text}".encode(), "python")
    assert without_errors(file, [text], str) == ([text] if is_kept else [])


def test_other_languages_and_files_without_errors_keep_all() -> None:
    for text, language in ((GOOD, "python"), ("int main( {", "cpp")):
        assert without_errors(ParsedSource(text.encode(), language), ["def half(:"], str) == ["def half(:"]


def test_the_first_error_has_its_line() -> None:
    assert first_error(ParsedSource(b"x = 1\ndef f(:\n", "python")) == "line 2: invalid syntax"
    assert first_error(ParsedSource(b"x = 1\n", "python")) == ""
