"""``rlm-lsp model``: installation and conversion of models, the choice of one per workspace, cards and checksums."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rlm_core import DataError, ModelError
from rlm_core.files import partial_path, remove_abandoned
from rlm_core.folders import remove_tree
from rlm_core.inference import model_store
from rlm_core.loading import is_remote

from rlm_lsp.rendering import console
from rlm_lsp.settings import files
from rlm_lsp.settings.store import SettingsStore

from . import options
from .options import PATH, Group, optional_packages

if TYPE_CHECKING:
    from rlm_core.inference.model_store import ModelSummary

_SHOWN = 6
_model_argument = click.argument("model", metavar="NAME|DIR|builtin", default="builtin")


@click.group(cls=Group)
def command() -> None:
    """List, choose, show, verify and convert models."""


@command.command(name="list")
@options.output_format("table", "json")
def list_(form: Literal["table", "json"]) -> None:
    """List the installed models; a star marks the one that is used in the working directory."""
    used = SettingsStore(folders=[Path.cwd()]).session.model
    rows: list[dict[str, Any]] = []
    for directory in model_store.installed():
        name = model_store.BUILTIN if directory == model_store.builtin() else directory.name
        try:
            summary = model_store.summary(directory)
        except ModelError as error:
            console.report_error(error)
            continue
        rows.append(
            {
                "used": used == name
                or (name != model_store.BUILTIN and Path(used).expanduser().absolute() == directory.absolute()),
                "name": name,
                "id": summary.model_id,
                "kind": summary.kind,
                "bytes": summary.size,
                "tuned_from": summary.tuned_from,
                "directory": str(directory),
            }
        )
    if form == "json":
        print(json.dumps(rows, indent=1))
        return
    cells = [["", "name", "id", "kind", "MiB", "tuned from"]]
    for row in rows:
        mark, size = "*" if row["used"] else "", f"{row['bytes'] / 2**20:.1f}"
        cells.append([mark, row["name"], row["id"], row["kind"], size, row["tuned_from"] or ""])
    console.print_table(cells)
    if not any(row["used"] for row in rows):
        console.line(f"used here: {used}")


@command.command()
@click.argument("source", metavar="hf:OWNER/NAME[@REVISION]|DIR")
@click.option("--name", metavar="NAME", help="Name of the installed model.", show_default="the last part of the source")
@click.option("--force", is_flag=True, help="Replace an installed model of that name.")
def add(source: str, name: str | None, force: bool) -> None:
    """Install a published model from the Hugging Face hub or a folder (needs the [rlm] extra).

    Downloads data files only, verifies them and converts them; no code of the model is run. If a download is
    interrupted, run the command again to continue it.
    """
    with optional_packages():
        from rlm_core.training.full import hub

    name = hub.default_name(source) if name is None else name
    directory = model_store.new_directory(name)
    if not force:
        _check_free(directory)
    # Before a download of hundreds of megabytes.
    options.require("rlm", "torch", *(("huggingface_hub",) if source.startswith(hub.SCHEME) else ()))
    with _download_bar(name) as show:
        fetched = hub.fetch(source, show)
    with optional_packages():
        from rlm_core.training.full import published

        origin = published.Origin(fetched.name, fetched.revision, fetched.license)
        with _write_errors(directory), _staging(directory, force) as staging:
            published.install(fetched.folder, staging, name, origin)
    summary = model_store.summary(directory)
    revision = f"@{fetched.revision}" if fetched.revision is not None else ""
    console.line(f"model        {summary.model_id} ({summary.kind}, {summary.size / 2**20:.1f} MiB)")
    console.line(f"directory    {directory}")
    console.line(f"source       {fetched.name}{revision}")
    console.line(f"license      {fetched.license or 'unknown; read the terms of its source'}")
    for line in (f"predict FILE --model {name}", f"model use {name}", f"model show {name}"):
        console.line(f"next         {console.PROGRAM} {line}")


def _check_free(directory: Path) -> None:
    if directory.exists():
        raise DataError(f"{directory}: already exists; give another --name, or replace it with --force")


@contextmanager
def _download_bar(name: str) -> Iterator[console.Progress]:
    """A bar of bytes on stderr, if it is a terminal."""
    from tqdm import tqdm

    with tqdm(
        desc=f"fetching {name}",
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        file=sys.stderr,
        leave=False,
        dynamic_ncols=True,
        disable=None,
    ) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show


@contextmanager
def _write_errors(directory: Path) -> Iterator[None]:
    """Report that a model cannot be written as an error."""
    from safetensors import SafetensorError

    advice = "free some space there"
    with options.write_errors(directory, advice):
        try:
            yield
        except SafetensorError as error:  # it is not an OSError where the disk is full
            raise ModelError(f"{directory}: cannot be written ({error}); {advice}") from None


@contextmanager
def _staging(directory: Path, force: bool) -> Iterator[Path]:
    """An empty directory that becomes ``directory`` when the block ends; after an exception nothing is changed."""
    staging = partial_path(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(directory)
        staging.mkdir()
        yield staging
        if not force:
            _check_free(directory)
        _replace(directory, staging)
    finally:
        remove_tree(staging)


def _replace(directory: Path, new: Path) -> None:
    """Put a new directory in the place of another one, or of none."""
    old = partial_path(directory)
    try:
        with suppress(FileNotFoundError):
            directory.rename(old)
        new.rename(directory)
    except BaseException:
        if old.exists() and not directory.exists():
            old.rename(directory)
        raise
    if old.is_symlink():
        old.unlink()
    else:
        remove_tree(old)


@command.command()
@click.argument("model", metavar="NAME|DIR|URL|builtin")
@click.option(
    "--workspace", metavar="DIR", type=PATH, help="Folder of the workspace.", show_default="the working directory"
)
@click.option("--everywhere", is_flag=True, help="Choose for all workspaces that have no separate choice.")
def use(model: str, workspace: Path | None, everywhere: bool) -> None:
    """Choose the model that editors use in a workspace.

    The choice is stored in your own settings, never in the workspace. A running server applies it when its settings
    change next, or when it restarts.
    """
    if everywhere and workspace is not None:
        raise DataError("model use: give either --workspace or --everywhere")
    value = model
    if not is_remote(model) and model != model_store.BUILTIN:
        directory = model_store.find(model)
        model_store.summary(directory)  # refuses a directory that is not a model
        value = str(directory)
    if everywhere:
        path = files.use_everywhere("model", value)
        console.line(f"{path}: model = {value}")
        return
    folder = (workspace or Path.cwd()).resolve()
    if not folder.is_dir():
        raise DataError(f"{folder}: is not a folder; name the workspace with --workspace")
    path = files.use_in_workspace(folder, "model", value)
    console.line(f"{path}: model = {value} for {folder}")


@command.command()
@_model_argument
@options.output_format("table", "json")
def show(model: str, form: Literal["table", "json"]) -> None:
    """Show the main facts of a model's card."""
    summary = model_store.summary(model_store.find(model))
    if form == "json":
        facts = {name: getattr(summary, name) for name in summary.__slots__} | {"directory": str(summary.directory)}
        print(json.dumps(facts, indent=1))
        return
    console.line(f"model        {summary.model_id} ({summary.kind}, {summary.size / 2**20:.1f} MiB)")
    console.line(f"directory    {summary.directory}")
    for basis, names in _tasks_by_basis(summary).items():
        devices = summary.devices.get(basis, ())
        known = f"; devices {_first_of(devices)}" if devices else ""
        console.line(f"{basis:<12} {_first_of(names)}{known}")
    for name in ("rows", "texts", "parameters", "epochs", "validation_loss", "validation_spearman"):
        value = summary.trained.get(name)
        if isinstance(value, int | float):
            console.line(f"{'trained':<12} {name.replace('_', ' ')} {value:,}")
    try:
        for refit in summary.trained.get("refitted", ()):
            _print_refit(refit)
        for tuning in summary.trained.get("tuned", ()):
            _print_tuning(tuning)
    except (LookupError, TypeError, ValueError, AttributeError):  # the rest of the card is fine
        raise ModelError(f"{summary.directory}: the card describes its training in another form") from None


def _print_refit(refit: dict[str, Any]) -> None:
    console.line(
        f"refitted     {refit['date']} from {refit['from']} on {refit['rows']:,} rows of"
        f" {refit['families']:,} project groups ({_first_of(refit['slices'])})"
    )


def _print_tuning(tuning: dict[str, Any]) -> None:
    console.line(
        f"tuned        {tuning['date']} from {tuning['from']} on {tuning['rows']:,} rows of {tuning['groups']:,} groups"
        f" ({_first_of(tuning['families'])})"
    )
    for key, entry in tuning["slices"].items():
        before, after = entry["before"], entry["after"]
        ranks = [figures["spearman"]["value"] if figures["spearman"] else float("nan") for figures in (before, after)]
        what = "offset and slope only; " if entry["kind"] == "level" else ""
        console.line(
            f"             {key}: {what}held-out Spearman {ranks[0]:.3f} to {ranks[1]:.3f}, error"
            f" {before['error']:.3f} to {after['error']:.3f}, coverage {before['coverage']:.0%} to"
            f" {after['coverage']:.0%}"
        )


def _tasks_by_basis(summary: ModelSummary) -> dict[str, list[str]]:
    tasks: dict[str, list[str]] = {}
    for name in summary.slices:
        basis, _, rest = name.partition("/")
        tasks.setdefault(basis, []).append(rest)
    return tasks


def _first_of(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


@command.command()
@_model_argument
def verify(model: str) -> None:
    """Compare the files of a model with the checksums in its card; the exit status is 1 if one differs."""
    summary = model_store.summary(model_store.find(model))
    checked = model_store.verify(summary)
    for file in checked:
        console.line(f"{file.state:<8} {file.name}")
    if not checked:
        raise ModelError(f"{summary.directory}: its card lists no files; export the model again")
    bad = sum(file.state != "ok" for file in checked)
    if bad:
        console.report_error(f"{summary.directory}: {bad} of {len(checked)} files differ from the card")
        raise click.exceptions.Exit(1)
    console.line(f"{summary.model_id}: all {len(checked)} files match the card")


@command.command()
@click.argument("checkpoint", metavar="CHECKPOINT.pt", type=PATH)
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory to write.")
@click.option("--numbers", type=click.Choice(["ieee", "p10"]), default="ieee", help="Number tokenizer.")
@click.option("--mantissa-digits", metavar="N", type=click.IntRange(min=1), help="Digits of a mantissa.")
@click.option("--exponent-digits", metavar="N", type=click.IntRange(min=1), help="Digits of an exponent (ieee).")
@click.option("--base", metavar="N", type=click.IntRange(min=2), help="Base of the digits (ieee).")
@click.option("--exponent-range", metavar="N", type=click.IntRange(min=1), help="Exponents are within ±N (p10).")
@click.option("--special", is_flag=True, help="The model has tokens for NaN, infinities and invalid values.")
@click.option("--separator", is_flag=True, help="The model writes a separator after each number.")
@click.option("--tokenizer", metavar="FILE", type=PATH, help="Text tokenizer of a from-scratch encoder.")
@click.option("--t5gemma", metavar="NAME|DIR", help="Base of a T5Gemma encoder.")
def convert(checkpoint: Path, out: Path, tokenizer: Path | None, t5gemma: str | None, **form: Any) -> None:
    """Convert a checkpoint of regress-lm to a full model (needs the [train] extra).

    The options describe the model in the checkpoint. No code in the file is run.
    """
    numbers = form.pop("numbers")
    settings = {name: value for name, value in form.items() if value is not None}
    foreign = {"ieee": {"exponent_range"}, "p10": {"base", "exponent_digits"}}[numbers]
    if wrong := sorted(settings.keys() & foreign):
        raise click.UsageError(f"--{wrong[0].replace('_', '-')} does not apply to --numbers {numbers}")
    with optional_packages():
        from rlm_core.training.full import regress_lm, store

        settings["special"] = regress_lm.SPECIAL if form["special"] else ()
        tokens = regress_lm.p10(**settings) if numbers == "p10" else regress_lm.ieee(**settings)
        encoder = None
        if t5gemma is not None:
            from rlm_core.training.full.encoders.pretrained import T5GemmaSettings
            from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

            encoder = T5GemmaEncoder(T5GemmaSettings(t5gemma, mode="full"))
        model = regress_lm.convert(checkpoint, tokens, tokenizer, encoder)
        card = store.save(model, out, checkpoint.stem)
    console.line(
        f"{out}: written, {sum(weight.numel() for weight in model.parameters()):,} parameters, model {card.model_id}"
    )
