"""Parses the fenced blocks of Markdown pages: language, attributes in braces, text and location.

Attributes of a fence, as in ```` ```sh { .not-run reason="opens an editor" } ````:

| | |
|---|---|
| `sh` | commands that are run and must succeed |
| `console` | commands after `$ `, each with its output below; a line `...` stands for omitted lines |
| `.not-run reason="..."` | commands that are parsed but not run |
| `.excerpt` | only some lines of the output are shown, in order |
| `.sample reason="..."` | output that differs between machines: only the first word of each line is compared |
| `status="1"` | the exit status of the last command |
| `needs="onnx"` | run with these packages; other blocks see only the base install |
| `title="NAME"` | a file that the reader creates; the commands below it can use it |
| `.run` | a Python program to run |
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
COMMANDS = frozenset({"sh", "console"})
_FENCE = re.compile(r"(?P<indent> *)(?P<fence>```+)(?P<language>[\w+-]*) *(?P<said>.*)$")
_PAIR = re.compile(r'([a-z][\w-]*)="([^"]*)"')
_CLASS = re.compile(r"(?<!\S)\.([a-z][\w-]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is the line of its opening fence, from 1, ``indent`` the spaces before it."""

    path: Path
    line: int
    indent: str
    language: str
    classes: frozenset[str]
    values: Mapping[str, str]
    text: str

    @property
    def place(self) -> str:
        """``docs/ci.md:12``."""
        return f"{self.path.relative_to(REPOSITORY).as_posix()}:{self.line}"

    @property
    def holds_commands(self) -> bool:
        """Whether it contains commands for the reader."""
        return self.language in COMMANDS

    @property
    def is_run(self) -> bool:
        """Whether the tests run it."""
        return self.holds_commands and "not-run" not in self.classes


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a block and its output according to the page; None if the page shows no output."""

    text: str
    output: tuple[str, ...] | None
    first: int  # the first line of its output in the block, from 0


def pages() -> list[Path]:
    """README and all pages below ``docs``."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order.

    Raises:
        ValueError: a block is not closed.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        start = number
        closing = f"{opening['indent']}{opening['fence']}"
        while number < len(lines) and lines[number].rstrip() != closing:
            number += 1
        if number == len(lines):
            raise ValueError(f"{path}:{start}: the block is not closed")
        said = opening["said"].strip("{} ")
        values = dict(_PAIR.findall(said))
        classes = frozenset(_CLASS.findall(_PAIR.sub("", said)))
        text = textwrap.dedent("\n".join(lines[start:number]) + "\n")
        yield Block(path, start, opening["indent"], opening["language"], classes, values, text)
        number += 1


def commands(block: Block) -> list[Command]:
    """The commands of a block in order; a ``sh`` block is a single command with any output."""
    if block.language == "sh":
        return [Command(block.text, None, 0)]
    found: list[Command] = []
    lines = block.text.splitlines()
    number = 0
    while number < len(lines):
        if not lines[number].startswith("$ "):
            raise ValueError(f"{block.place}: a console block must begin with `$ ` and a command")
        text = lines[number][2:]
        number += 1
        while text.endswith("\\"):
            text += "\n" + lines[number].removeprefix("> ")
            number += 1
        first = number
        while number < len(lines) and not lines[number].startswith("$ "):
            number += 1
        found.append(Command(text, tuple(lines[first:number]), first))
    return found
