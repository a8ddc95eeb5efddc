"""Writes a card's section about the model itself: its tasks, training, sizes, files and bands."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.inference.calibration import COVERAGES, INTERVALS, MIN_GROUPS
from rlm_core.inference.card import CARD, StudentCard
from rlm_core.inference.features import answers_alone
from rlm_core.queries.devices import device_table
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.datasets.schema import read_tables

from . import card_text as words
from .report import table

_MEBI = 2**20
_MOST_DEVICES = 12


def what_it_predicts(card: StudentCard) -> str:
    """A table of bases: metrics, languages, devices and the default query."""
    metrics: dict[str, dict[str, None]] = defaultdict(dict)
    languages: dict[str, dict[str, None]] = defaultdict(dict)
    for entry in card.tasks:
        task = task_parts(entry.name)
        metrics[task.basis][task.metric] = languages[task.basis][task.language] = None
    lines = [["basis", "metrics", "languages", "devices", "default query"]]
    for basis in (basis for basis in words.BASES if basis in metrics):
        names = [", ".join(metrics[basis]), ", ".join(languages[basis])]
        lines.append(
            [f"`{basis}`: {words.BASES[basis]}", *names, _devices(card, basis), "; ".join(_defaults(card, basis))]
        )
    return table(lines)


def _devices(card: StudentCard, basis: str) -> str:
    known = card.devices.get(basis, ())
    names = [device_table()[device].name if device in device_table() else device for device in known[:_MOST_DEVICES]]
    more = f" and {len(known) - len(names)} more" if len(known) > len(names) else ""
    return f"{len(known)}: {', '.join(names)}{more}" if len(known) > 1 else ", ".join(names)


def _defaults(card: StudentCard, basis: str) -> list[str]:
    found = []
    for key, query in card.defaults.items():
        if key.split("/")[0] != basis:
            continue
        parts = [query["device"]] if query.get("device") else []
        parts += [f"{name}={value}" for name, value in query.get("workload", {}).items()]
        prefix = f"{key.split('/')[1]}: " if "/" in key else ""
        found.append(f"{prefix}{', '.join(f'`{part}`' for part in parts)}")
    return found


def heading(card: StudentCard) -> str:
    """The model's id and what it was trained on."""
    trained = card.trained
    parts = [f"Model id: `{card.model_id}`."]
    if "rows" in trained:
        parts.append(f"Trained on {trained['rows']:,} rows ({trained.get('texts', 0):,} texts).")
    if trained.get("pretraining_tokens"):
        parts.append(f"Pretrained without labels on {trained['pretraining_tokens'] / 1e6:,.1f} million tokens.")
    if "start" in trained:
        parts.append(f"Continued with the encoder of `{trained['start']}`.")
    if trained.get("tokens"):
        epochs = f" in {trained['epochs']} epochs" if "epochs" in trained else ""
        parts.append(f"Trained with labels on {trained['tokens'] / 1e6:,.1f} million tokens{epochs}.")
    if "validation_loss" in trained:
        parts.append(f"Validation loss {trained['validation_loss']} nats.")
    for refit in trained.get("refitted", ()):
        bases = ", ".join(f"`{name}`" for name in dict.fromkeys(name.split("/")[0] for name in refit["slices"]))
        parts.append(
            f"Then {bases} was refitted on the encoder of `{refit['from']}` to {refit['rows']:,} rows"
            f" ({refit['texts']:,} texts) of {refit['families']:,} project groups; all else is unchanged."
        )
    if judges := trained.get("judges"):
        kept = ", ".join(f"`{name}`" for name in judges["slices"])
        parts.append(f"The trees and n-gram ridges of {kept} are those of `{judges['from']}`, which are as good.")
    return " ".join(parts)


def sizes(card: StudentCard) -> str:
    """The sizes of the student, one per line."""
    return table([["size", "value"], *([f"`{name}`", f"{value:,}"] for name, value in card.sizes.items())])


def files(card: StudentCard, directory: Path) -> str:
    """The files of the model with their bytes."""
    bytes_of = {name: (directory / name).stat().st_size for name in (*card.files, CARD)}
    lines = [["file", "bytes", "MiB"]]
    lines += [[f"`{name}`", f"{size:,}", f"{size / _MEBI:.2f}"] for name, size in bytes_of.items()]
    total = sum(bytes_of.values())
    return table([*lines, ["all", f"{total:,}", f"{total / _MEBI:.2f}"]])


def deep_weights(card: StudentCard) -> str:
    """The weight of the deep part's evidence by task that the head answers."""
    headed = [entry for entry in card.tasks if not answers_alone(entry.name)]
    return (
        table([["task", "weight"], *([entry.name, f"{entry.deep_weight:.2f}"] for entry in headed)]) if headed else ""
    )


def training_time(card: StudentCard) -> str:
    """Time by stage of the run that made the weights; empty when the card does not have it."""
    seconds: Mapping[str, float] = card.trained.get("seconds") or {}
    # A resumed run skips the stages that an earlier run finished.
    found = {stage: value for stage, value in seconds.items() if value >= 1}
    lines = [["stage", "minutes"], *([stage, f"{value / 60:.1f}"] for stage, value in found.items())]
    lines.append(["all", f"{sum(found.values()) / 60:.1f}"])
    skipped = ", ".join(stage for stage in seconds if stage not in found)
    note = f"\n\nFrom an earlier run, whose time is not known: {skipped}." if skipped else ""
    return table(lines) + note if found else ""


def calibrated(card: StudentCard) -> str:
    """The calibrated levels that predictions use."""
    head = ["task", "groups", "rows", *(f"level of {100 * coverage:.0f} %" for coverage in COVERAGES)]
    lines = [head]
    for name, level in card.calibration.to_json().items():
        if level["groups"] >= MIN_GROUPS and name.count("/") < 3:
            values = [f"{level['levels'][INTERVALS.index(coverage)]:.3f}" for coverage in COVERAGES]
            lines.append([name, f"{level['groups']:,}", f"{level['rows']:,}", *values])
    return f"Levels with at least {MIN_GROUPS} groups, without those of single devices.\n\n{table(lines)}"


@dataclass(frozen=True, slots=True)
class SourceCount:
    """The rows of one source of labels by split, and their distinct groups and texts."""

    key: str
    basis: str
    rows: Mapping[str, int]
    groups: int
    texts: int


def source_of(row_id: str, basis: str) -> str:
    """The key of a row's label source: the first part of its id; for kernels, modules and networks the first two."""
    parts = row_id.split("/")
    if parts[0] in ("triton", "nas") and len(parts) > 1:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else basis


def count_sources(paths: Sequence[Path]) -> list[SourceCount]:
    """Count the rows of data sets by label source and basis, a batch at a time.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    texts: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    for path in paths:
        next(read_tables([path]), None)
        for batch in pq.ParquetFile(path).iter_batches(4096, columns=["id", "basis", "split", "group", "text"]):
            table = pa.Table.from_batches([batch])
            names = (table[name].to_pylist() for name in ("id", "basis", "split", "group"))
            coded = pc.dictionary_encode(table["text"]).combine_chunks()
            digests = [hashlib.blake2b(t.encode(), digest_size=8).digest() for t in coded.dictionary.to_pylist()]
            for name, basis, split, group, text in zip(*names, coded.indices.to_pylist(), strict=True):
                key = source_of(name, basis), basis
                rows[key][split] += 1
                groups[key].add(group)
                texts[key].add(digests[text])
    return [SourceCount(*key, dict(rows[key]), len(groups[key]), len(texts[key])) for key in rows]
