"""What all commands share: how they end, and the options that several have."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import click
from rlm_core import RlmError

from rlm_lsp.rendering import console


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Errors that a user can mend become one line and exit status 2; an interrupt or a closed pipe ends quietly."""
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
        # Python flushes stdout once more at exit; give it something that takes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(141) from None


def _flush() -> None:
    if not sys.stdout.closed:
        sys.stdout.flush()


class Group(click.Group):
    """Lists its commands in the order in which they were added, shows its help when none is named, and ends quietly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added."""
        return list(self.commands)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """See :class:`click.Group`."""
        with _quiet_end():
            return super().make_context(*args, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without any the help is shown."""
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See :class:`click.Group`."""
        with _quiet_end():
            return super().invoke(ctx)


class SpreadCommand(click.Command):
    """A command where ``--inputs A B`` means ``--inputs A --inputs B``, so that a shell may expand it.

    ``spread`` is that option. Arguments of the command come before it.
    """

    spread: ClassVar[str]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, each value of the option with an option of its own."""
        spread: list[str] = []
        several = False
        rest = iter(args)
        for word in rest:
            if several and not word.startswith("-"):
                spread += [self.spread, word]
                continue
            several = word.partition("=")[0] == self.spread
            spread += [word, *(islice(rest, 1) if word == self.spread else ())]
        return super().parse_args(ctx, spread)


class DataCommand(SpreadCommand):
    """A command without arguments that takes data sets."""

    spread = "--data"


PATH = click.Path(path_type=Path)


def _model_in_use(context: click.Context, option: click.Parameter, value: str | None) -> str:
    """The model that was named, else the one that the user's settings name for the working directory."""
    if value is not None:
        return value
    from rlm_lsp.settings.store import SettingsStore

    return SettingsStore(folders=[Path.cwd()]).session.model


model_option = click.option(
    "--model",
    metavar="DIR|URL|builtin",
    callback=_model_in_use,
    show_default="the one that `rlm-lsp model use` chose here, else builtin",
    help="An exported model, a model server's address, or the model that ships with rlm-lsp.",
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=0),
    default=0,
    help="Threads of the model; 0 leaves the choice to onnxruntime.",
)
cpu_scale_option = click.option(
    "--no-cpu-scale",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, option, off: os.environ.update(RLM_LSP_CPU_SCALE="0") if off else None,
    help="Leave latencies as on the machine of the labels, as RLM_LSP_CPU_SCALE=0 does.",
)
store_option = click.option(
    "--store", metavar="FILE", type=PATH, help="Where measurements are kept, instead of the user's data folder."
)
data_option = click.option(
    "--data",
    type=PATH,
    multiple=True,
    required=True,
    metavar="X.parquet...",
    help="One data set or several; may be repeated.",
)

most_option = click.option(
    "--most",
    metavar="N",
    type=click.IntRange(min=0),
    default=8000,
    help="Rows a slice and device, a seeded sample; 0 for all.",
)

ray_option = click.option(
    "--ray",
    metavar="auto|HOST:PORT|local",
    help="Spread the work over the nodes of a Ray cluster (needs the [ray] extra).",
)
