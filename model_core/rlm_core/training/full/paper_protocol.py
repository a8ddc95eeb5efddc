"""The evaluation of arXiv 2509.26476 for its published models: Spearman by space and language on the published data.

In: a full model that is asked by a prefix, and Parquet files of ``akhauriyash/Code-Regression`` or
``akhauriyash/GraphArch-Regression``. Of each space, the first rows with a text and a finite target are read as the
models were trained to read them (:mod:`rlm_core.training.full.spaces`). Each gets two predictions: the median of a few
draws with top-p sampling, as the authors evaluate, and the median of the model's distribution, which needs no draws.
Next to both are the values of the authors' cards and of an independent reproduction.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from tqdm import tqdm

from rlm_core.errors import DataError, ModelError
from rlm_core.training.datasets.code_regression import read_batches
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.evaluation.report import plain, table

from . import store
from .decoding import quantiles, sample
from .model import FullModel
from .quantile_search import served_tolerance
from .sequences import Slot
from .spaces import CODENET, SPACES, Space, network_space, space_named

ROWS, DRAWS = 512, 8
TEMPERATURE, TOP_P = 1.0, 0.95
SEED = 0
CAVEAT = (
    "The data sets have no published held-out split: the models may have been trained on these rows, so the figures do "
    "not show how well unseen code is ranked."
)
# By space, and of CodeNet by language as its metadata write it. The card gives one value for CodeNet.
CARD = {
    ("APPS", ""): 0.926,
    ("CDSS", "C++"): 0.787,
    ("KBSS", ""): 0.527,
    ("NASBench101", ""): 0.384,
    ("ENAS", ""): 0.211,
    ("NASNet", ""): 0.209,
}
# github.com/MachineLearning-Nerd/icml26-repro-utTapVWtc7: 512 rows of a space, 200 of a language of CodeNet.
_REPRODUCED_CODENET = {
    "C++": 0.788,
    "Python": 0.611,
    "Java": 0.456,
    "C": 0.735,
    "Ruby": 0.409,
    "C#": 0.367,
    "Rust": 0.587,
    "Go": 0.720,
    "Haskell": 0.585,
    "Kotlin": 0.535,
    "JavaScript": 0.329,
    "PHP": 0.237,
    "D": 0.578,
    "Scala": 0.446,
    "OCaml": 0.625,
    "Perl": 0.477,
    "Fortran": 0.412,
}
REPRODUCED = {
    ("APPS", ""): 0.927,
    ("KBSS", ""): 0.535,
    ("NASBench101", ""): 0.407,
    ("ENAS", ""): 0.249,
    ("NASNet", ""): 0.207,
    **{(CODENET.name, language): value for language, value in _REPRODUCED_CODENET.items()},
}
CODENET_LANGUAGES = tuple(_REPRODUCED_CODENET)
_TARGETS = ("target", "val_accuracy")
_TEXTS = 64  # encoded at once

Array = npt.NDArray[np.float64]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Example:
    """A row: its text as the data have it, and its target in the data's unit."""

    text: str
    target: float


@dataclass(frozen=True, slots=True)
class Predictions:
    """Two predictions per example, in the data's unit; NaN where the model wrote no number.

    Attributes:
        drawn: ``(examples,)``, the median of the draws.
        exact: ``(examples,)``, the median of the distribution.
        cropped: how many texts lost their end.
    """

    drawn: Array
    exact: Array
    cropped: int


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """Spearman's rank correlations of one space, for CodeNet of one language; None where one has no meaning.

    Attributes:
        space, language: as the data write them; no language for other spaces than CodeNet.
        rows: rows that were evaluated.
        cropped: rows whose text was cut at the model's limit.
        drawn, exact: of the median of the draws, and of the median of the distribution.
        card, reproduction: published values.
    """

    space: str
    language: str
    rows: int
    cropped: int
    drawn: float | None
    exact: float | None
    card: float | None
    reproduction: float | None


@dataclass(frozen=True, slots=True)
class ProtocolReport:
    """One evaluation; ``codenet`` is the mean over the languages of CodeNet, None with fewer than two of them."""

    model: str
    draws: int
    seed: int
    spaces: Sequence[SpaceReport]
    codenet: SpaceReport | None
    caveat: str = CAVEAT

    def __str__(self) -> str:
        lines = [["space", "language", "rows", "cut", f"median of {self.draws} draws", "exact median"]]
        lines[0] += ["authors' card", "reproduction"]
        for entry in (*self.spaces, *([self.codenet] if self.codenet is not None else [])):
            figures = (entry.drawn, entry.exact, entry.card, entry.reproduction)
            cells = ["" if value is None else plain(value) for value in figures]
            lines.append([entry.space, entry.language, f"{entry.rows:,}", f"{entry.cropped:,}", *cells])
        head = f"model {self.model}, Spearman, temperature {TEMPERATURE:g}, top-p {TOP_P:g}, seed {self.seed}"
        return "\n\n".join([head, table(lines), self.caveat])


def evaluate_directory(
    directory: Path, data: Sequence[Path], spaces: Sequence[str] = (), *, rows: int = ROWS, draws: int = DRAWS
) -> ProtocolReport:
    """Evaluate a saved model, on a GPU where there is one; see :func:`evaluate`.

    Args:
        directory: of the model.
        data: Parquet files.
        spaces: names, see :func:`named_spaces`; none for all of ``SPACES``.
        rows: of each space, of each language for CodeNet.
        draws: per row.

    Raises:
        ModelError: the directory does not hold a full model, or the model is asked by queries.
        DataError: a file cannot be read, or none of the spaces has a row.
    """
    model, card = store.load(directory, "cuda" if torch.cuda.is_available() else "cpu")
    chosen = named_spaces(spaces) if spaces else SPACES
    return evaluate(model, card.model_id, data, chosen, rows=rows, draws=draws)


def evaluate(
    model: FullModel,
    name: str,
    data: Sequence[Path],
    spaces: Sequence[Space] = SPACES,
    *,
    rows: int = ROWS,
    draws: int = DRAWS,
    seed: int = SEED,
) -> ProtocolReport:
    """Evaluate a model on the first rows of some spaces.

    Args:
        model: in evaluation mode, asked by a prefix.
        name: of the model, for the report.
        data: Parquet files, read until all spaces have enough rows.
        spaces: which to evaluate, CodeNet by language; those without a row are left out.
        rows: rows of each space, of each language for CodeNet.
        draws: per row.
        seed: of the draws of each space and language.

    Raises:
        ModelError: the model is asked by queries.
        DataError: a file cannot be read, or none of the spaces has a row.
    """
    if model.query_tokens is not None:
        raise ModelError(f"{name}: asked by queries; this protocol is for the published models, asked by a prefix")
    examples = read_examples(data, spaces, rows)
    by_name = {space.name: space for space in spaces}
    reports = []
    with tqdm(desc="predicting", total=sum(map(len, examples.values())), unit="row", disable=None) as bar:
        for (space, language), own in examples.items():
            found = predict(model, by_name[space], language, own, draws, seed, bar.update)
            reports.append(_report(space, language, own, found))
    return ProtocolReport(name, draws, seed, reports, _mean([entry for entry in reports if entry.language]))


def named_spaces(names: Sequence[str]) -> tuple[Space, ...]:
    """The spaces of these names, each once; a name that is not in ``SPACES`` is taken for one of networks."""
    found = (space_named(name) or network_space(name) for name in names)
    return tuple({space.name: space for space in found}.values())


def read_examples(data: Sequence[Path], spaces: Sequence[Space], rows: int) -> dict[Key, list[Example]]:
    """The first rows of each space with a text and a finite target, by space and language.

    Files are read once, a few hundred rows at a time, and no further than needed. Spaces and languages without a row
    are left out.

    Args:
        data: Parquet files in the published schema.
        spaces: which to read.
        rows: of each space, for CodeNet of each language.

    Raises:
        DataError: a file cannot be read or lacks a column, or no row was found.
    """
    found: dict[Key, list[Example]] = {}
    for space in spaces:
        found |= {
            (space.name, language): [] for language in (CODENET_LANGUAGES if space.name == CODENET.name else ("",))
        }
    missing = dict.fromkeys(found, rows)
    seen: set[str] = set()
    for path in data:
        if not missing:
            break
        with tqdm(desc=f"reading {path.name}", unit="row", disable=None) as bar:
            for batch, done, total in read_batches(path, ("space", "input"), (*_TARGETS, "metadata")):
                for key, example in _usable(batch, missing, seen):
                    found[key].append(example)
                    missing[key] -= 1
                    if not missing[key]:
                        del missing[key]
                bar.total = total
                bar.update(done - bar.n)
                if not missing:
                    break
    kept = {key: examples for key, examples in found.items() if examples}
    if not kept:
        held = f"they hold {', '.join(sorted(seen))}" if seen else "they hold no rows"
        wanted = ", ".join(space.name for space in spaces)
        raise DataError(f"{', '.join(map(str, data))}: no usable rows of {wanted}; {held}; change --space")
    return kept


def _usable(batch: pa.RecordBatch, missing: Mapping[Key, int], seen: set[str]) -> Iterator[tuple[Key, Example]]:
    """The usable rows of a batch of what is still missing; only their texts become Python objects."""
    names = batch.schema.names
    targets = [batch[name].to_pylist() for name in _TARGETS if name in names]
    for row, space in enumerate(batch["space"].to_pylist()):
        seen.add(str(space))
        metadata = batch["metadata"][row].as_py() if space == CODENET.name and "metadata" in names else None
        key = space, _language(metadata, missing) if space == CODENET.name else ""
        if key not in missing:
            continue
        target = _finite(next((column[row] for column in targets if column[row] is not None), None))
        text = batch["input"][row].as_py()
        if text is not None and target is not None:
            yield key, Example(str(text), target)


def _language(metadata: Any, missing: Mapping[Key, int]) -> str:
    """The language of a solution if it is one of those that are missing; else empty."""
    wanted = [language for space, language in missing if space == CODENET.name]
    if isinstance(metadata, str):
        # To read a literal takes a hundred times as long as to look for a word, and most languages are full early.
        if not any(f"'{language}'" in metadata or f'"{language}"' in metadata for language in wanted):
            return ""
        try:
            metadata = ast.literal_eval(metadata)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ""
    language = metadata.get("language") if isinstance(metadata, dict) else None
    return language if language in wanted else ""


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def predict(
    model: FullModel,
    space: Space,
    language: str,
    examples: Sequence[Example],
    draws: int,
    seed: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Predictions:
    """Both predictions for the examples of one space and language.

    Args:
        model: in evaluation mode, asked by a prefix.
        space: whose prefix and limit of tokens apply.
        language: as the prefix names it.
        examples: of any number; a bounded part of them is encoded at once, the longest first.
        draws: per example.
        seed: of the draws; they depend on the other examples too.
        advance: receives how many more examples are done.
    """
    generator = torch.Generator(model.device).manual_seed(seed)
    tolerance = served_tolerance(model.config.numbers)
    drawn, exact = np.full(len(examples), np.nan), np.full(len(examples), np.nan)
    cropped = 0
    texts = [space.reading(example.text, language) for example in examples]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    for start in range(0, len(order), _TEXTS):
        chunk = order[start : start + _TEXTS]
        with store.autocast(model.device):
            memories = model.encode([texts[index] for index in chunk], space.max_tokens)
        questions = [[[Slot()]]] * len(chunk)
        medians = quantiles(model, memories, questions, (0.5,), tolerance)
        samples = sample(model, memories, questions, draws, generator, TEMPERATURE, TOP_P)
        for index, memory, [median], [numbers] in zip(chunk, memories, medians, samples, strict=True):
            written = numbers[~np.isnan(numbers)]
            drawn[index] = np.median(written) if len(written) else np.nan
            exact[index] = median.values[0]
            cropped += memory.cropped > 0
        advance(len(chunk))
    return Predictions(drawn, exact, cropped)


def _report(space: str, language: str, examples: Sequence[Example], found: Predictions) -> SpaceReport:
    actual = np.array([example.target for example in examples])

    def correlation(predicted: Array) -> float | None:
        known = ~np.isnan(predicted)
        return spearman(predicted[known], actual[known]) if known.sum() > 1 else None

    key = space, language
    figures = correlation(found.drawn), correlation(found.exact), CARD.get(key), REPRODUCED.get(key)
    return SpaceReport(space, language, len(examples), found.cropped, *figures)


def _mean(entries: Sequence[SpaceReport]) -> SpaceReport | None:
    """The mean over the languages of CodeNet; a figure that one of them lacks has none."""
    if len(entries) < 2:
        return None

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if len(known) == len(values) else None

    return SpaceReport(
        CODENET.name,
        f"mean of {len(entries)}",
        sum(entry.rows for entry in entries),
        sum(entry.cropped for entry in entries),
        mean([entry.drawn for entry in entries]),
        mean([entry.exact for entry in entries]),
        None,
        mean([entry.reproduction for entry in entries]),
    )
