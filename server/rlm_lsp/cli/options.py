"""Parts that several commands share: options, groups, checks for optional packages, processes of one training run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click
from rlm_core import DataError, RlmError

from rlm_lsp.rendering import console

if TYPE_CHECKING:
    from rlm_core.measurement import Store
    from rlm_core.measurement.known import KnownMeasurements
    from rlm_core.training.distributed import Processes

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
# Package that the base install lacks -> the extra that installs it.
EXTRAS = (
    dict.fromkeys(("torch", "pyarrow", "sklearn", "scipy", "onnx", "onnxscript", "matplotlib", "tensorboard"), "train")
    | dict.fromkeys(("transformers", "accelerate", "peft"), "rlm")
    | dict.fromkeys(("starlette", "uvicorn"), "serve")
    | {"plotly": "report", "triton": "triton", "mcp": "mcp", "pydantic": "mcp"}
)


class Group(click.Group):
    """Lists commands in the order of their definition; called without a command, shows its help and exits with 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of their definition."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


class SpreadCommand(click.Command):
    """A command where ``--inputs A B`` means ``--inputs A --inputs B``, so that a shell can expand a glob.

    ``spread`` is the name of that option. Positional arguments must come before it.
    """

    spread: ClassVar[str]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the option repeated in front of each of its values."""
        spread: list[str] = []
        is_value = False
        rest = iter(args)
        for word in rest:
            if is_value and not word.startswith("-"):
                spread += [self.spread, word]
                continue
            is_value = word.partition("=")[0] == self.spread
            spread += [word, *(islice(rest, 1) if word == self.spread else ())]
        return super().parse_args(ctx, spread)


class DataCommand(SpreadCommand):
    """A command that takes data sets and has no positional arguments."""

    spread = "--data"


def _model_in_use(context: click.Context, option: click.Parameter, value: str | None) -> str:
    """Return the named model, else the one that the user's settings choose: `builtin`, an address or a directory.

    Raises:
        ModelError: there is no such model.
    """
    from rlm_core.inference import model_store
    from rlm_core.loading import is_remote

    if value is None:
        from rlm_lsp.settings.files import SettingsStore

        value = SettingsStore(folders=[Path.cwd()]).session.model
    return value if value == model_store.BUILTIN or is_remote(value) else str(model_store.find(value))


model = click.option(
    "--model",
    metavar="NAME|DIR|URL|builtin",
    callback=_model_in_use,
    show_default="the choice of `rlm-lsp model use`, else builtin",
    help="An installed or exported model, the address of a model server, or the built-in model.",
)
threads = click.option(
    "--threads", metavar="N", type=click.IntRange(min=0), default=0, help="Number of threads (0: automatic)."
)
jobs = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Largest number of processes (0: the cores that this process may use). Little work takes one.",
)
cpu_scale = click.option(
    "--no-cpu-scale",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, option, off: os.environ.update(RLM_LSP_CPU_SCALE="0") if off else None,
    help="Do not scale latencies to this CPU; same as RLM_LSP_CPU_SCALE=0.",
)
strict = click.option(
    "--strict",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, option, on: os.environ.update(RLM_LSP_STRICT="1") if on else None,
    help="Stop with a traceback where the analysis of a unit fails; same as RLM_LSP_STRICT=1.",
)
no_measured = click.option(
    "--no-measured", is_flag=True, help="Predict from the text alone, whatever was measured of it."
)
store = click.option(
    "--store",
    metavar="FILE",
    type=PATH,
    help="File with the stored measurements.",
    show_default="in the user's data folder",
)
data = click.option(
    "--data", type=PATH, multiple=True, required=True, metavar="X.parquet...", help="One or more data sets; repeatable."
)
split = click.option(
    "--split",
    type=click.Choice(["test", "val", "cal", "train", "all"]),
    default="test",
    help="Split of the data sets to use.",
)
resume = click.option("--resume", is_flag=True, help="Continue from the last checkpoint in --out.")
accelerate = click.option(
    "--accelerate",
    is_flag=True,
    help="Train a full model in the processes that `accelerate launch` or `torchrun` started (needs the [rlm] extra).",
)
ray = click.option(
    "--ray",
    metavar="auto|HOST:PORT|local",
    help="Distribute the work over the nodes of a Ray cluster (needs the [ray] extra).",
)

ray_gpu = click.option(
    "--ray-gpu",
    metavar="KIND",
    help="With --ray, use only GPUs of this kind, by Ray's name for it, such as H100 or A100.",
)


def check_ray_gpu(kind: str | None, ray: str | None, *, on_gpu: bool) -> None:
    """Refuse ``--ray-gpu`` where it would have no effect.

    Raises:
        RlmError: there is no ``--ray``, or the work needs no GPU.
    """
    if kind is not None and ray is None:
        raise RlmError(f"--ray-gpu {kind}: needs a cluster; add --ray ADDRESS")
    if kind is not None and not on_gpu:
        raise RlmError(f"--ray-gpu {kind}: this work runs on CPUs; leave the option out")


def output_format(*forms: str, help: str = "Output format.") -> Callable[[CommandT], CommandT]:  # noqa: A002
    """``--format`` with these choices, the first one the default; passed to the command as ``form``."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], help=help)


def most(default: int, rows: str = "Rows") -> Callable[[CommandT], CommandT]:
    """``--most``: the size of the sample of each task and device."""
    return click.option(
        "--most",
        metavar="N",
        type=click.IntRange(min=0),
        default=default,
        help=f"{rows} per task and device, sampled with a fixed seed (0: all).",
    )


def require(extra: str, *packages: str) -> None:
    """Check that packages of an extra are installed.

    Raises:
        RlmError: a package is missing.
    """
    for package in packages:
        if find_spec(package) is None:
            raise _missing(package, extra)


@contextmanager
def optional_packages() -> Iterator[None]:
    """Report a failed import of an optional package as an error that names the extra to install.

    Raises:
        RlmError: a package of an extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise _missing(package, EXTRAS[package]) from None


def _missing(package: str, extra: str) -> RlmError:
    return RlmError(f"{package} is not installed; run: pip install '.[{extra}]'")


@contextmanager
def training_processes(accelerate: bool) -> Iterator[Processes]:
    """The processes of one training run: this one, or with ``accelerate`` all that the launcher started.

    Only the main process prints. The others end with status 0 when the main one reports an error.

    Raises:
        RlmError: a package of an extra is missing, or the processes cannot be joined.
    """
    with optional_packages():
        from rlm_core.training.distributed import ReportedElsewhereError, processes

        try:
            with processes(accelerate) as joined:
                yield joined
        except ReportedElsewhereError:
            raise click.exceptions.Exit(0) from None


def check_accelerate(accelerate: bool, is_full: bool, name: str) -> None:
    """Refuse ``--accelerate`` for a student, which one process trains in minutes.

    Raises:
        DataError: ``--accelerate`` was given for a student.
    """
    if accelerate and not is_full:
        raise DataError(f"--accelerate: {name} is a student, which one process trains in minutes; leave the option out")


@contextmanager
def write_errors(path: Path | str, advice: str = "check the disk and the path") -> Iterator[None]:
    """Report that a file cannot be written as an error.

    Raises:
        RlmError: the block raised an OSError, other than for a closed pipe.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RlmError(f"{path}: cannot be written ({error.strerror}); {advice}") from None


def known_measurements(*, off: bool = False, note: Callable[[str], None] = console.note) -> KnownMeasurements:
    """The user's measurements, and those committed with the project in the working directory; messages go to ``note``.

    Without any where ``off``.
    """
    from rlm_core.measurement.known import KnownMeasurements

    return KnownMeasurements(None) if off else KnownMeasurements(open_store(None, note), project_folders(), note)


def project_folders() -> list[Path]:
    """The folders whose committed measurements count: the working directory, and those above up to its repository's."""
    here = Path.cwd()
    folders = [here, *here.parents]
    last = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: last + 1]


def open_store(path: Path | None, note: Callable[[str], None] = console.note) -> Store:
    """The store of measurements in a file, or with None the user's; its messages go to ``note``."""
    from rlm_core.measurement import Store

    return Store(path.absolute() if path is not None else None, note)
