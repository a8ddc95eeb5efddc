"""Parses commands that tests cannot run, as the shell and our own command line would."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import click
from rlm_lsp.cli.app import app

_ENDS = frozenset({";", "|", "||", "&", "&&"})
_REDIRECTIONS = frozenset({">", ">>", "<", "2>"})


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a script, without assignments before it and redirections.

    Raises:
        ValueError: the quotes do not match.
    """
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.wordchars += "@:{},+%^$"
        words: list[str] = []
        skipped = False
        for word in [*lexer, ";"]:
            if word in _ENDS:
                if words:
                    yield words
                words = []
            elif skipped or word in _REDIRECTIONS:
                skipped = word in _REDIRECTIONS
            elif words or "=" not in word.partition("/")[0]:
                words.append(word)


def our_commands(name: str = "rlm-lsp", command: click.Command = app) -> Iterator[tuple[str, click.Command]]:
    """All commands and groups of the program with their full names, such as ``rlm-lsp data build``."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for part in command.list_commands(context):
            found = command.get_command(context, part)
            assert found is not None
            yield from our_commands(f"{name} {part}", found)


def check_ours(words: Sequence[str]) -> None:
    """Parse the words of an ``rlm-lsp`` command as the program would.

    Raises:
        click.UsageError: an option, a command or a value is not valid.
    """
    command: click.Command = app
    rest = list(words)
    name = rest.pop(0)
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), rest[0]) if rest else None
        if found is None:
            raise click.UsageError(f"{name} {' '.join(rest)}: no such command")
        name, command = f"{name} {rest.pop(0)}", found
    command.make_context(name, rest)
