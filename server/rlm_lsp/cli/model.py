"""``rlm-lsp model``: installation and conversion of models, the choice of one per workspace, cards and checksums."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rlm_core import DataError, ModelError
from rlm_core.files import partial_path, remove_abandoned
from rlm_core.folders import remove_tree
from rlm_core.inference import model_store
from rlm_core.loading import is_remote
from rlm_core.types import METRICS_OF_BASIS

from rlm_lsp.rendering import console
from rlm_lsp.settings import files
from rlm_lsp.settings.store import SettingsStore

from . import options
from .model_calibrate import calibrate
from .options import PATH, Group, optional_packages

if TYPE_CHECKING:
    from rlm_core.inference.model_store import ModelSummary, SpaceSummary
    from rlm_core.training.full.spaces import Space

_SHOWN = 6
_MAX_TOKENS = 2048  # the default of regress-lm
_NUMBER_SETTINGS = ("mantissa_digits", "exponent_digits", "base", "exponent_range", "separator")
_SPACE_OPTIONS = ("basis", "metric", "language", "unit", "prefix")
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
@click.option(
    "--device", metavar="NAME", help="Device that a model's latencies are of, such as H100, where its data name none."
)
def add(source: str, name: str | None, force: bool, device: str | None) -> None:
    """Install a published model from the Hugging Face hub or a folder (needs the [rlm] extra).

    Downloads data files only, verifies them and converts them; no code of the model is run. If a download is
    interrupted, run the command again to continue it.
    """
    with optional_packages():
        from rlm_core.training.full import hub
        from rlm_core.training.full.spaces import spaces_of

    name = hub.default_name(source) if name is None else name
    directory = model_store.new_directory(name)
    # All that can be refused before a download of hundreds of megabytes.
    if not force:
        _check_free(directory)
    spaces = spaces_of(_repository(source) or str(Path(source).absolute()), device)
    options.require("rlm", "torch", *_packages(source))
    with _download_bar(name) as show:
        fetched = hub.fetch(source, show)
    with optional_packages():
        from rlm_core.training.full import published

        origin = published.Origin(fetched.name, fetched.revision, fetched.license)
        with _write_errors(directory), _staging(directory, force) as staging:
            published.install(fetched.folder, staging, name, origin, spaces)
    summary = model_store.summary(directory)
    revision = f"@{fetched.revision}" if fetched.revision is not None else ""
    console.line(f"model        {summary.model_id} ({summary.kind}, {summary.size / 2**20:.1f} MiB)")
    console.line(f"directory    {directory}")
    console.line(f"source       {fetched.name}{revision}")
    console.line(f"license      {fetched.license or 'unknown; read the terms of its source'}")
    for line in (f"predict FILE --model {name}", f"model use {name}", f"model show {name}"):
        console.line(f"next         {console.PROGRAM} {line}")


def _repository(source: str) -> str | None:
    """The name of a model on the hub; None for a folder."""
    from rlm_core.training.full.hub import SCHEME

    return source.removeprefix(SCHEME).partition("@")[0] if source.startswith(SCHEME) else None


def _packages(source: str) -> tuple[str, ...]:
    """The optional packages that fetching and converting a published model need."""
    from rlm_core.training.full import hub

    repository = _repository(source)
    if repository is None:
        return ()
    known = hub.KNOWN.get(repository)
    encoder = ("transformers", "accelerate") if known is not None and known.checkpoint is not None else ()
    return ("huggingface_hub", *encoder)


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


command.add_command(calibrate)


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


@command.command()
@click.argument("checkpoint", metavar="CHECKPOINT.pt", type=PATH)
@click.option("--out", metavar="DIR", type=PATH, required=True, help="Directory to write.")
@click.option("--numbers", type=click.Choice(["ieee", "p10"]), default="ieee", help="Number tokenizer.")
@click.option("--mantissa-digits", metavar="N", type=click.IntRange(min=1), help="Digits of a mantissa.")
@click.option("--exponent-digits", metavar="N", type=click.IntRange(min=1), help="Digits of an exponent (ieee).")
@click.option("--base", metavar="N", type=click.IntRange(min=2), help="Base of the digits (ieee).")
@click.option("--exponent-range", metavar="N", type=click.IntRange(min=1), help="Exponents are within ±N (p10).")
@click.option(
    "--special",
    metavar="NAME",
    multiple=True,
    help="Special value that has a token: NAN, INF, NINF or INVALID; repeatable.",
)
@click.option("--separator", is_flag=True, help="The model writes a separator after each number.")
@click.option("--tokenizer", metavar="FILE", type=PATH, help="Text tokenizer of a from-scratch encoder.")
@click.option("--t5gemma", metavar="NAME|DIR", help="Base of a T5Gemma encoder.")
@click.option(
    "--max-tokens",
    metavar="N",
    type=click.IntRange(min=1),
    help="Longest text that the model reads.",
    show_default="that of --space, else 2048",
)
@click.option("--space", metavar="NAME", multiple=True, help="Published data set that the model knows; repeatable.")
@click.option("--basis", type=click.Choice(list(METRICS_OF_BASIS)), help="Unit of code that the model predicts for.")
@click.option("--metric", type=click.Choice(["latency", "memory", "accuracy"]), help="What its numbers measure.")
@click.option("--language", metavar="NAME", multiple=True, help="Language of its texts; repeatable.")
@click.option("--unit", metavar="FACTOR", type=float, help="SI units per 1 of its numbers: 1e-3 for ms, 1024 for KiB.")
@click.option("--device", metavar="NAME", help="Device of its measurements, such as H100 or x86-64.")
@click.option("--prefix", metavar="TEXT", help="Text before the code; {space} and {language} are filled in.")
def convert(
    checkpoint: Path, out: Path, tokenizer: Path | None, t5gemma: str | None, numbers: str, **given: Any
) -> None:
    """Convert a checkpoint of regress-lm to a full model (needs the [train] extra).

    The options describe the model in the checkpoint and what it may be asked: published data sets (--space), or your
    own (--basis, --metric, --language, --unit). No code in the file is run.
    """
    settings = {name: given[name] for name in _NUMBER_SETTINGS if given[name] is not None}
    foreign = {"ieee": {"exponent_range"}, "p10": {"base", "exponent_digits"}}[numbers]
    if wrong := sorted(settings.keys() & foreign):
        raise click.UsageError(f"--{wrong[0].replace('_', '-')} does not apply to --numbers {numbers}")
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise DataError(f"{out}: already exists; name a new directory with --out, or remove it")
    spaces = _spaces(checkpoint.stem, given)
    max_tokens = max(space.max_tokens for space in spaces)
    with optional_packages():
        from rlm_core.training.full import published, regress_lm

        settings["special"] = regress_lm.special_tokens(given["special"])
        tokens = regress_lm.p10(**settings) if numbers == "p10" else regress_lm.ieee(**settings)
        encoder = None if t5gemma is None else regress_lm.t5gemma_encoder(t5gemma, max_tokens)
        model = regress_lm.convert(checkpoint, tokens, tokenizer, encoder, max_tokens)
        with _write_errors(out), _staging(out, force=True) as staging:
            card = published.save(model, staging, checkpoint.stem, spaces, published.Origin(str(checkpoint)))
    console.line(
        f"{out}: written, {sum(weight.numel() for weight in model.parameters()):,} parameters, model {card.model_id}"
    )
    console.line(f"next: {console.PROGRAM} predict FILE --model {out}")


def _spaces(name: str, given: Mapping[str, Any]) -> tuple[Space, ...]:
    """What a converted model may be asked, by the options of the command.

    Raises:
        DataError: the options name nothing, contradict each other, or have an unknown value.
    """
    from rlm_core.training.full.spaces import NAMED_SPACES, new_space, on_device, space_named

    described = [option for option in _SPACE_OPTIONS if given[option] not in (None, ())]
    known = ", ".join(space.name for space in NAMED_SPACES)
    if not given["space"]:
        needed = [f"--{option}" for option in _SPACE_OPTIONS if option != "prefix" and option not in described]
        if needed and (described or given["device"]):
            raise DataError(f"{needed[0]} is missing: --basis, --metric, --language and --unit describe a data set")
        if needed:
            raise DataError(
                "nothing says what the model may be asked; give --space with one of "
                f"{known}, or --basis, --metric, --language and --unit"
            )
        settings = {option: given[option] for option in ("basis", "metric", "unit", "device")}
        return (
            new_space(
                name,
                languages=given["language"],
                prefix=given["prefix"] or "",
                max_tokens=given["max_tokens"] or _MAX_TOKENS,
                **settings,
            ),
        )
    if described:
        raise DataError(f"--{described[0]} does not apply to --space, which describes its data set; leave one out")
    spaces = []
    for wanted in given["space"]:
        space = space_named(wanted, NAMED_SPACES)
        if space is None:
            raise DataError(f"--space {wanted}: unknown; give one of {known}, or describe the data set with --basis")
        spaces.append(replace(space, max_tokens=given["max_tokens"] or space.max_tokens))
    return on_device(spaces, given["device"], f"--space {' '.join(given['space'])}")
