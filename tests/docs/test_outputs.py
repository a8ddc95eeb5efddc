"""When shown output stands for printed output, and how it is renewed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from .blocks import REPOSITORY, Block, blocks, commands
from .outputs import agrees, begins_alike, renewed, same
from .parsing import check_ours, simple_commands


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("f  1.1–34 µs", "f 1.1–34 µs", True),
        ("f  1.1–34 µs", "f 1.2–36 µs", True),
        ("f  1.1–34 µs", "f 1.1–54 µs", False),
        ("f  950 ns", "f 1 µs", True),
        ("f  950 ns", "f 1 ms", False),
        ("a.py:14 f", "a.py:15 f", False),
        ("over with 97 % probability", "over with 96 % probability", True),
        ('"median": 0.0094142431', '"median": 0.0095142431', True),
        ('"median": 0.0094142431', '"median": 0.0194142431', False),
        ("rlm-lsp: 1 file, 2 units in 0.2 s (7 units/s)", "rlm-lsp: 1 file, 2 units in 9.1 s (1 units/s)", True),
        ("rlm-lsp: 1 file; 0 findings; 0.2 s", "rlm-lsp: 1 file; 1 finding; 0.2 s", False),
    ],
)
def test_numbers_with_units_may_differ_a_little_and_nothing_else(shown: str, printed: str, expected: bool) -> None:
    assert same(shown, printed) == expected


def test_an_ellipsis_matches_any_lines_and_nothing_else_does() -> None:
    printed = ["a", "b", "c", "d"]
    assert agrees(["a", "...", "d"], printed) is None
    assert agrees(["a", "b", "..."], printed) is None
    assert agrees(["...", "c", "d"], printed) is None
    assert agrees(["a", "d"], printed) == "d"
    assert agrees(["a", "b", "c"], printed) is not None
    assert agrees(["...", "x"], printed) == "x"
    assert agrees(["d", "a"], printed, excerpt=True) == "a"
    assert agrees(["b", "d"], printed, excerpt=True) is None


def test_renewed_lines_are_those_printed_or_the_nearest_of_an_excerpt() -> None:
    printed = ["f latency 2 µs", "f memory 1 B", "g latency 3 µs"]
    assert renewed(["old"], printed) == printed
    assert renewed(["f latency 9 µs", "..."], printed) == ["f latency 2 µs", "..."]
    assert renewed(["g latency 9 µs"], printed, excerpt=True) == ["g latency 3 µs"]


def test_samples_are_compared_by_how_their_lines_begin() -> None:
    assert begins_alike(["python 3.11", "    more"], ["python 3.13", "    other"])
    assert not begins_alike(["python 3.11"], ["pypy 3.11"])


def test_a_console_block_is_commands_and_their_output() -> None:
    text = "$ one \\\n> two\nout\n$ three\n"
    block = Block(REPOSITORY / "a.md", 1, "", "console", frozenset(), {}, text)
    assert [(command.text, command.output) for command in commands(block)] == [
        ("one \\\ntwo", ("out",)),
        ("three", ()),
    ]


def test_fences_say_classes_and_values(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        '- x\n\n  ```sh { .not-run reason="a .sh file" }\n  rlm-lsp\n  ```\n\n```python title="a.py"\nx\n```\n'
    )
    first, second = blocks(page)
    assert (first.line, first.indent, first.language, first.text) == (3, "  ", "sh", "rlm-lsp\n")
    assert (set(first.classes), first.values) == ({"not-run"}, {"reason": "a .sh file"})
    assert second.values == {"title": "a.py"}
    page.write_text("```sh\n")
    with pytest.raises(ValueError, match="not closed"):
        list(blocks(page))


def test_commands_are_taken_out_of_a_script() -> None:
    script = "A=1 rlm-lsp check --diff \"$(git merge-base a b)\" > out  # why\npython -c 'x' | rlm-lsp doctor && ls\n"
    assert list(simple_commands(script)) == [
        ["rlm-lsp", "check", "--diff", "$(git merge-base a b)"],
        ["python", "-c", "x"],
        ["rlm-lsp", "doctor"],
        ["ls"],
    ]


@pytest.mark.parametrize("line", ["rlm-lsp check --nope", "rlm-lsp nope", "rlm-lsp data", "rlm-lsp check --fail-on x"])
def test_what_our_command_line_does_not_know_is_refused(line: str) -> None:
    with pytest.raises(click.UsageError):
        check_ours(line.split())
