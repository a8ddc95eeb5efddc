"""``rlm-lsp model``: installation and conversion of models, the choice of one per workspace, cards and checksums."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rlm_core import DataError, ModelError
from rlm_core.inference import model_store
from rlm_core.loading import is_remote

from rlm_lsp.rendering import console
from rlm_lsp.settings import files
from rlm_lsp.settings.files import SettingsStore

from . import options
from .model_calibrate import calibrate
from .model_install import add, convert
from .options import PATH, Group

if TYPE_CHECKING:
    from rlm_core.inference.model_store import ModelSummary, SpaceSummary

_SHOWN = 6
_model_argument = click.argument("model", metavar="NAME|DIR|builtin", default="builtin")


@click.group(cls=Group)
def command() -> None:
    """Install, list, choose, show, calibrate, verify and convert models."""


for subcommand in (add, calibrate, convert):
    command.add_command(subcommand)


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
    origin, spaces = model_store.origin(summary), model_store.spaces(summary)
    if form == "json":
        facts = {name: getattr(summary, name) for name in summary.__slots__} | {"directory": str(summary.directory)}
        if spaces:
            facts["spaces"] = [asdict(space) for space in spaces]
        print(json.dumps(facts, indent=1))
        return
    console.line(f"model        {summary.model_id} ({summary.kind}, {summary.size / 2**20:.1f} MiB)")
    console.line(f"directory    {summary.directory}")
    if origin is not None:
        revision = f"@{origin.revision}" if origin.revision is not None else ""
        console.line(f"source       {origin.source}{revision}")
        console.line(f"license      {origin.license or 'unknown; read the terms of its source'}")
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
    if spaces:
        _print_spaces(spaces)


def _print_spaces(spaces: tuple[SpaceSummary, ...]) -> None:
    """Print what a converted model answers, one row per data set."""
    cells = [["space", "answers", "languages", "device", "unit", "calibrated on"]]
    for space in spaces:
        si = {"latency": " s", "memory": " B"}.get(space.metric, "")
        cells.append(
            [
                space.name,
                f"{space.basis} {space.metric}",
                _first_of(space.languages),
                space.device or "any",
                f"{space.unit:g}{si}",
                ", ".join(
                    f"{_calibrated_language(space, language)}{level.rows:,} rows of {level.groups:,} groups"
                    for language, level in space.calibrated.items()
                )
                or "uncalibrated",
            ]
        )
    console.print_table(cells)


def _calibrated_language(space: SpaceSummary, language: str) -> str:
    return f"{language}: " if len(space.languages) > 1 else ""


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
