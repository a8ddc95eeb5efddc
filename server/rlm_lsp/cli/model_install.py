"""``rlm-lsp model add`` and ``model convert``: other people's models become models that can be asked.

A model is written into a temporary directory, which takes its place at the end: a failure changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rlm_core import DataError, ModelError
from rlm_core.files import partial_path, remove_abandoned
from rlm_core.folders import remove_tree
from rlm_core.inference import model_store
from rlm_core.types import METRICS_OF_BASIS

from rlm_lsp.rendering import console

from . import options
from .options import PATH, optional_packages

if TYPE_CHECKING:
    from rlm_core.training.full.spaces import Space

_MAX_TOKENS = 2048  # the default of regress-lm
_NUMBER_SETTINGS = ("mantissa_digits", "exponent_digits", "base", "exponent_range", "separator")
_SPACE_OPTIONS = ("basis", "metric", "language", "unit", "prefix")


@click.command()
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

        origin = model_store.ModelOrigin(fetched.name, fetched.revision, fetched.license)
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


@click.command()
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
            card = published.save(model, staging, checkpoint.stem, spaces, model_store.ModelOrigin(str(checkpoint)))
    console.line(
        f"{out}: written, {sum(weight.numel() for weight in model.parameters()):,} parameters, model {card.model_id}"
    )
    console.line(f"next: {console.PROGRAM} predict FILE --model {out}")


def _spaces(name: str, given: Mapping[str, Any]) -> tuple[Space, ...]:
    """Return the questions that a converted model answers, by the options of the command.

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
