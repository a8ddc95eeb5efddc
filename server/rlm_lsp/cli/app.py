"""The ``rlm-lsp`` program: the list of commands, and how every command ends.

Each command is the ``command`` of the module of its name. A module is imported only when its command is called, so
``rlm-lsp --help`` and ``rlm-lsp serve`` start without the libraries that other commands need.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from rlm_core import RlmError

from rlm_lsp import __version__
from rlm_lsp.rendering import console

from .options import Group

# The list of commands, by task, shows these lines, so that it need not import the commands.
TASKS = {
    "Predict": {
        "predict": "Predict the cost of the units in files or directories.",
        "sizes": "List the inputs that costs depend on, and their known sizes.",
        "rank": "Rank several versions of one function by latency.",
        "check": "Check units against their budgets, for CI.",
    },
    "Editors, agents and teams": {
        "serve": "Run the language server.",
        "mcp": "Serve predictions to coding agents.",
        "serve-model": "Serve a model to a team over HTTP.",
        "doctor": "Show versions, the model, the CPU score and a self-test.",
    },
    "Measure": {
        "measure": "Measure your own functions and programs.",
        "bench": "Benchmark your own kernels, modules and networks.",
        "report": "Compare measurements with predictions in an HTML file.",
    },
    "Models": {
        "model": "List, choose, show, verify and convert models.",
        "tune": "Tune or refit a model on your own measurements.",
        "adapt": "Adapt a model to a new device from 10 to 100 measurements.",
        "data": "Build data sets from labels.",
        "train": "Train a model on labels, or on a teacher's predictions.",
        "eval": "Evaluate a model and write its model card.",
        "export": "Export a trained model.",
    },
}
COMMANDS = {name: line for commands in TASKS.values() for name, line in commands.items()}
# Old spelling -> new one, reported for one release: remove these with 0.2.
RENAMED = {
    "refit": "tune --refit",
    "distill": "train --teacher DIR|URL",
    "convert": "model convert",
    "card": "eval --card FILE",
}


class Program(Group):
    """Imports a command when it is called, and reports errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is none.

        Raises:
            RlmError: the command was renamed, or the name is nearly that of one.
        """
        if cmd_name in RENAMED:
            raise RlmError(f"{cmd_name} was renamed; run: {console.PROGRAM} {RENAMED[cmd_name]}")
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, 1)
            if near and not ctx.resilient_parsing:
                raise RlmError(f"there is no command {cmd_name!r}; did you mean: {console.PROGRAM} {near[0]}")
            return None
        command: click.Command = import_module(f".{cmd_name.replace('-', '_')}", __package__).command
        command.name = cmd_name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        width = max(map(len, COMMANDS))
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """See :class:`click.Group`."""
        with _one_line_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """See :class:`click.Group`."""
        with _one_line_errors():
            return super().invoke(ctx)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn errors that a user can fix into one line and exit status 2; end quietly on Ctrl+C and on a closed pipe."""
    try:
        try:
            yield
        except click.exceptions.Exit:
            _flush()
            raise
        _flush()
    except RlmError as error:
        console.report_error(error)
        raise click.exceptions.Exit(2) from None
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
        console.report_error(error.format_message() + hint)
        raise click.exceptions.Exit(2) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    except BrokenPipeError:
        # Python flushes stdout once more at exit; give it a file that accepts the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(141) from None


def _flush() -> None:
    if not sys.stdout.closed:
        sys.stdout.flush()


@click.group(cls=Program, context_settings={"show_default": True})
@click.version_option(__version__, message=f"{console.PROGRAM} %(version)s", help="Print the version and exit.")
def app() -> None:
    """Predict what code will cost: latency and memory, in editors and on the command line.

    Predicting runs none of your code.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show `µ` must not stop the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The entry point of the ``rlm-lsp`` program."""
    # What is left at the end is not searched for garbage, which would take a tenth of a short command's time.
    atexit.register(gc.freeze)
    app(prog_name=console.PROGRAM)
