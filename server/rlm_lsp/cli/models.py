"""``rlm-lsp model``: which models there are, which one a workspace uses, what a card says, whether files are whole.

The commands are whole here, options and all; what they need is imported when they are called.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rlm_core import DataError, ModelError

from rlm_lsp.rendering import console

if TYPE_CHECKING:
    from rlm_core.models import Summary

_PATH = click.Path(path_type=Path)
_SHOWN = 6
_form = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="Or JSON.")
_name = click.argument("model", metavar="NAME|DIR|builtin", default="builtin")


@click.command(name="list")
@_form
def list_(form: Literal["table", "json"]) -> None:
    """List the models there are; a star marks the one that the working directory's workspace uses."""
    from rlm_core import loading, models

    used = _used(Path.cwd())
    rows: list[dict[str, Any]] = []
    for directory in models.installed():
        name = loading.BUILTIN if directory == loading.builtin() else directory.name
        try:
            found = models.summary(directory)
        except ModelError as error:
            console.report_error(error)
            continue
        rows.append(
            {
                "used": _is_used(used, name, directory),
                "name": name,
                "id": found.model_id,
                "kind": found.kind,
                "bytes": found.size,
                "tuned_from": found.tuned_from,
                "directory": str(directory),
            }
        )
    if form == "json":
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [["", "name", "id", "kind", "MiB", "tuned from"]]
    for row in rows:
        mark, size = "*" if row["used"] else "", f"{row['bytes'] / 2**20:.1f}"
        cells.append([mark, row["name"], row["id"], row["kind"], size, row["tuned_from"] or ""])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if not any(row["used"] for row in rows):
        print(f"used here: {used}")


@click.command()
@click.argument("model", metavar="NAME|DIR|URL|builtin")
@click.option("--workspace", metavar="DIR", type=_PATH, help="For this folder.", show_default="the working directory")
@click.option("--everywhere", is_flag=True, help="For all workspaces that have no model of their own instead.")
def use(model: str, workspace: Path | None, everywhere: bool) -> None:
    """Choose the model that editors use in a workspace.

    The choice is kept in the user's own settings, never in the workspace. A running server takes it over with its next
    change of settings or when it starts again.
    """
    from rlm_core import loading, models

    from rlm_lsp.settings import files

    if everywhere and workspace is not None:
        raise DataError("use: give --workspace or --everywhere, one of the two")
    value = model
    if not model.lower().startswith(("http://", "https://")) and model != loading.BUILTIN:
        directory = models.find(model)
        models.summary(directory)  # refuses what is no model
        value = str(directory)
    if everywhere:
        path = files.use_everywhere("model", value)
        print(f"{path}: model = {value}")
        return
    folder = (workspace or Path.cwd()).resolve()
    if not folder.is_dir():
        raise DataError(f"{folder}: is not a folder; name the workspace with --workspace")
    path = files.use_in_workspace(folder, "model", value)
    print(f"{path}: model = {value} for {folder}")


@click.command()
@_name
@_form
def show(model: str, form: Literal["table", "json"]) -> None:
    """Show what a model's card says, in short."""
    from rlm_core import models

    found = models.summary(models.find(model))
    if form == "json":
        told = {name: getattr(found, name) for name in found.__slots__} | {"directory": str(found.directory)}
        print(json.dumps(told, indent=1, ensure_ascii=False))
        return
    print(f"model        {found.model_id} ({found.kind}, {found.size / 2**20:.1f} MiB)")
    print(f"directory    {found.directory}")
    for basis, names in _by_basis(found).items():
        devices = found.devices.get(basis, ())
        known = f"; devices {_some(devices)}" if devices else ""
        print(f"{basis:<12} {_some(names)}{known}")
    for name in ("rows", "texts", "parameters", "epochs", "validation_loss", "validation_spearman"):
        value = found.trained.get(name)
        if isinstance(value, int | float):
            print(f"{'trained':<12} {name.replace('_', ' ')} {value:,}")
    for told in found.trained.get("refitted", ()):
        print(
            f"refitted     {told['date']} from {told['from']} on {told['rows']:,} rows of {told['families']:,} families"
            f" ({_some(told['slices'])})"
        )
    for told in found.trained.get("tuned", ()):
        _print_tuning(told)


def _print_tuning(told: dict[str, Any]) -> None:
    print(
        f"tuned        {told['date']} from {told['from']} on {told['rows']:,} rows of {told['groups']:,} groups"
        f" ({_some(told['families'])})"
    )
    for key, entry in told["slices"].items():
        before, after = entry["before"], entry["after"]
        ranks = [figures["spearman"]["value"] if figures["spearman"] else float("nan") for figures in (before, after)]
        what = "level and slope only; " if entry["kind"] == "level" else ""
        print(
            f"             {key}: {what}held-out Spearman {ranks[0]:.3f} to {ranks[1]:.3f}, error"
            f" {before['error']:.3f} to {after['error']:.3f}, coverage {before['coverage']:.0%} to"
            f" {after['coverage']:.0%}"
        )


def _by_basis(found: Summary) -> dict[str, tuple[str, ...]]:
    bases: dict[str, list[str]] = {}
    for name in found.slices:
        basis, _, rest = name.partition("/")
        bases.setdefault(basis, []).append(rest)
    return {basis: tuple(names) for basis, names in bases.items()}


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


@click.command()
@_name
def verify(model: str) -> None:
    """Compare every file of a model with the checksums in its card; exit status 1 when one differs."""
    from rlm_core import models

    found = models.summary(models.find(model))
    checked = models.verify(found)
    for one in checked:
        print(f"{one.state:<8} {one.name}")
    if not checked:
        raise ModelError(f"{found.directory}: its card names no files; export the model again")
    bad = [one for one in checked if one.state != "ok"]
    if bad:
        console.report_error(f"{found.directory}: {len(bad)} of {len(checked)} files are not those of the card")
        raise click.exceptions.Exit(1)
    print(f"{found.model_id}: all {len(checked)} files are those of the card")


def _used(folder: Path) -> str:
    """The model that the settings choose for a workspace folder."""
    from rlm_lsp.settings.store import SettingsStore

    return SettingsStore(folders=[folder]).session.model


def _is_used(used: str, name: str, directory: Path) -> bool:
    return used == name or (name != "builtin" and Path(used).expanduser().absolute() == directory.absolute())


COMMANDS = (list_, use, show, verify)
