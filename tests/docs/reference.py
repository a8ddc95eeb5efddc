"""The sections of ``docs/commands.md``: one a command of the command line, in its order, with its own help."""

from __future__ import annotations

import re

import click
from rlm_lsp.cli.app import app

from .blocks import REPOSITORY

PAGE = REPOSITORY / "docs" / "commands.md"
_SECTION = re.compile(r"^## (?P<name>.+)\n(?P<text>(?:(?!## ).*\n)*)", re.MULTILINE)


def names(group: click.Group = app, prefix: str = "") -> list[str]:
    """All commands and groups, like ``data build``; the program itself is ``rlm-lsp``."""
    found = [prefix.strip() or "rlm-lsp"]
    for name, command in group.commands.items():
        full = f"{prefix} {name}"
        found += names(command, full) if isinstance(command, click.Group) else [full.strip()]
    return found


def asked(name: str) -> str:
    """The command that prints a command's help."""
    return f"$ {'' if name == 'rlm-lsp' else 'rlm-lsp '}{name} --help\n"


def complete(text: str) -> str:
    """The page with a section for each command; those that are there keep their words, those of no command go."""
    there = {section["name"]: section["text"] for section in _SECTION.finditer(text)}
    head = text.partition("\n## ")[0]
    empty = "\n```console\n{}```\n\n"
    sections = (f"## {name}\n{there.get(name, empty.format(asked(name)))}" for name in names())
    return f"{head}\n{''.join(sections).rstrip()}\n"
