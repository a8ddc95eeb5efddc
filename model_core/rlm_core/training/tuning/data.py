"""A team's data sets -> usable rows, and what the student's parts predict for them.

Usable are values of tasks and devices that the model can predict. Rows of the ``test`` split are never read, so that
``rlm-lsp eval`` on them stays an honest figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.errors import DataError
from rlm_core.inference.features import forest_key, has_trees
from rlm_core.inference.ngram_ridge import calendar
from rlm_core.inference.student import ENCODER
from rlm_core.inference.tokenizer import Ids, crop
from rlm_core.queries.devices import OWN_PREFIX, canonical_device
from rlm_core.queries.query_vector import task_parts
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, floor_of, load_corpus
from rlm_core.training.student.batches import HeadInputs, head_inputs
from rlm_core.training.student.encoder_fit import Bank
from rlm_core.training.student.forest_fit import Matrix
from rlm_core.training.student.head_fit import Features, needed
from rlm_core.training.student.ngram_ridge_fit import BASES, contributions
from rlm_core.training.student.train import encode_all
from rlm_core.training.student.trees_fit import feature_matrix

from .student import LoadedStudent, ModelScope, TeamMachine

SPLITS = ("train", "val", "cal")
_Completion = Callable[[str, str], tuple[str | None, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class TeamRows:
    """Rows to tune on, the queries that the model gets for them, what was left out by reason, and the new devices.

    ``machine`` is set where rows of basis ``call`` came: calls have one device, and the model's answers for it are no
    longer those of the machine of the labels.
    """

    corpus: Corpus
    left_out: dict[str, int]
    devices: dict[str, list[str]]
    machine: TeamMachine | None


def read_rows(paths: Sequence[Path], known: ModelScope) -> TeamRows:
    """The usable rows of data sets.

    Raises:
        DataError: a file is not a data set, or no row is of a task of the model, or none can be used.
    """
    corpus = load_corpus(paths, SPLITS, known.tasks, known.forms)
    machine = _team_machine(corpus, known)
    queries_of = [_completed(corpus, known, query) for query in range(len(corpus.queries))]
    left_out: Counter[str] = Counter()
    kept, query = [], np.zeros(len(corpus.rows), np.int64)
    queries: dict[tuple[str | None, tuple[tuple[str, str], ...]], int] = {}
    new: dict[str, list[str]] = {}
    for row, (number, before, value) in enumerate(
        zip(corpus.rows.task, corpus.rows.query, corpus.rows.value, strict=True)
    ):
        name = corpus.tasks[number]
        basis, _, metric, _ = task_parts(name)
        device, workload = queries_of[before](basis, metric)
        reason = _unusable(name, float(value), device, workload, known)
        if reason is not None:
            left_out[reason] += 1
            continue
        if device is not None and device not in known.devices.get(basis, ()):
            names = new.setdefault(basis, [])
            if device not in names:
                names.append(device)
        kept.append(row)
        query[row] = queries.setdefault((device, tuple(sorted(workload.items()))), len(queries))
    if not kept:
        reasons = "; ".join(f"{count:,} rows: {reason}" for reason, count in left_out.items())
        raise DataError(f"{', '.join(map(str, paths))}: no row can be used ({reasons})")
    chosen = replace(corpus.rows, query=query).chosen(np.array(kept, np.int64))
    distinct = [(device, dict(workload)) for device, workload in queries]
    return TeamRows(replace(corpus, rows=chosen, queries=distinct), dict(left_out), new, machine)


def _team_machine(corpus: Corpus, known: ModelScope) -> TeamMachine | None:
    """Return the machine and interpreter of most rows, which calls are predicted for after tuning."""
    calls = np.array([name.startswith("call/") for name in corpus.tasks])[corpus.rows.task]
    if not calls.any():
        return None
    numbers, counts = np.unique(corpus.rows.query[calls], return_counts=True)
    device, workload = corpus.queries[int(numbers[counts.argmax()])]
    default: Any = known.defaults["call"]
    device = device or default["device"]
    # Predictions for the machine of the labels are scaled to the user's processor; those for the user's are not.
    named = device if device.startswith(OWN_PREFIX) else OWN_PREFIX + device
    return TeamMachine(named, {**default["workload"], **workload})


def _completed(corpus: Corpus, known: ModelScope, number: int) -> _Completion:
    """The query of a row as the predictor completes it; for calls the one that the model knows."""
    device, workload = corpus.queries[number]

    def filled(basis: str, metric: str) -> tuple[str | None, dict[str, str]]:
        default: Any = known.defaults.get(f"{basis}/{metric}") or known.defaults.get(basis, {})
        if basis == "call":
            return default.get("device"), dict(default.get("workload", {}))
        found = device or default.get("device")
        found = found and (canonical_device(found) or found)
        own: Any = known.defaults.get(f"{basis}@{found}", default)
        return found, {**own.get("workload", {}), **workload}

    return filled


def _unusable(name: str, value: float, device: str | None, workload: dict[str, str], known: ModelScope) -> str | None:
    """Return why a row cannot be learned from; None if it can."""
    basis, _, metric, _ = task_parts(name)
    if metric == "accuracy":
        return f"values of {name}: accuracies are not tuned"
    if not np.isfinite(value) or value < 0 or (value == 0 and floor_of(name) == 0):
        return f"values of {name} that are not positive numbers"
    forests = known.forests
    if forests is not None and has_trees(name) and forest_key(name, workload, device) not in forests:
        return f"{name} with a device or workload that the model does not know; `rlm-lsp adapt` adds devices"
    unknown = device not in known.devices.get(basis, ())
    if unknown and basis != "call" and canonical_device(device or "") is None:
        return f"{name} on {device}, an unknown device; `rlm-lsp adapt` learns it from a few measurements"
    return None


def sampled(corpus: Corpus, most: int, seed: int = 0) -> Corpus:
    """At most ``most`` rows of each task."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in np.unique(corpus.rows.task):
        selected = np.flatnonzero(corpus.rows.task == number)
        parts.append(np.sort(rng.choice(selected, most, replace=False)) if len(selected) > most else selected)
    return compact(replace(corpus, rows=corpus.rows.chosen(np.concatenate(parts))))


def compact(corpus: Corpus) -> Corpus:
    """The corpus without the texts that no row refers to."""
    rows = corpus.rows
    used = np.unique(np.concatenate([rows.text, rows.callees.ravel()]))
    used = used[used >= 0]
    index = np.full(len(corpus.texts), -1)
    index[used] = np.arange(len(used))
    callees = np.where(rows.callees >= 0, index[rows.callees.clip(0)], -1).astype(np.int32)
    return replace(
        corpus, texts=[corpus.texts[i] for i in used], rows=replace(rows, text=index[rows.text], callees=callees)
    )


def unlabelled_callees(corpus: Corpus) -> Corpus:
    """Rows for the callees without a measurement: the team's unlabelled texts as units, with values of NaN."""
    rows = corpus.rows
    labelled = {(int(number), int(text)) for number, text in zip(rows.task, rows.text, strict=True)}
    owners: list[int] = []
    texts: list[int] = []
    for row in range(len(rows)):
        for text in rows.callees[row].ravel():
            key = (int(rows.task[row]), int(text))
            if text >= 0 and key not in labelled:
                labelled.add(key)
                owners.append(row)
                texts.append(int(text))
    found = rows.chosen(np.array(owners, np.int64))
    return replace(
        corpus,
        rows=replace(
            found,
            text=np.array(texts, np.int64),
            callees=np.full_like(found.callees, -1),
            value=np.full(len(texts), np.nan),
        ),
    )


Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Encoded:
    """The texts of a corpus: uncropped ids, syntax counts, vectors."""

    ids: list[Ids]
    counts: npt.NDArray[np.float32]
    bank: Bank


@dataclass(frozen=True, slots=True)
class TuningData:
    """Everything about rows that tuning does not change, each array ``(rows, ...)``.

    ``wide`` is the prediction of the model's n-gram ridge or trees and ``actual`` the measured value, both in log10 of
    SI units and at least the floor; ``keys`` are forest keys; ``evidence`` are the deep part's logits beyond the
    query's; ``features`` are those of the rows of tasks with trees, by task.
    """

    corpus: Corpus
    encoded: Encoded
    wide: Array
    actual: Array
    keys: npt.NDArray[np.str_]
    inputs: HeadInputs
    evidence: Tensor
    features: dict[int, Matrix]

    def rows_of(self, number: int) -> Rows:
        """The rows of a task."""
        return np.flatnonzero(self.corpus.rows.task == number)

    def head_inputs(self, student: LoadedStudent, rows: Rows, wide: Array) -> HeadInputs:
        """The head's inputs for rows of one task, with other ``wide`` predictions ``(rows,)`` in log10."""
        scale = student.card.tasks[int(self.corpus.rows.task[rows[0]])].scale if len(rows) else None
        inputs = self.inputs.rows(torch.from_numpy(rows))
        if scale is None:
            return inputs
        return replace(inputs, wide=torch.from_numpy(scale.position(10 ** np.clip(wide, -300, 300)).astype(np.float32)))


def encode(student: LoadedStudent, corpus: Corpus, encoder: Path | None = None) -> Encoded:
    """Encode the texts of a corpus as the predictor does."""
    ids = corpus.encode(student.tokenizer)
    context = student.sizes.context
    bank = encode_all(encoder or student.directory / ENCODER, [crop(text, context)[0] for text in ids])
    return Encoded(ids, np.stack([structure(*entry) for entry in corpus.texts]), bank)


def build(student: LoadedStudent, corpus: Corpus, encoded: Encoded) -> TuningData:
    """Compute what the model's parts predict for the rows of a corpus, whose tasks must be the model's."""
    rows = corpus.rows
    wide, actual = np.zeros(len(rows)), np.zeros(len(rows))
    position, target = np.zeros(len(rows)), np.zeros(len(rows))
    keys = np.array(
        [
            forest_key(corpus.tasks[number], corpus.queries[query][1], corpus.queries[query][0])
            for number, query in zip(rows.task, rows.query, strict=True)
        ]
    )
    forest_features: dict[int, Matrix] = {}
    for number in np.unique(rows.task):
        selected, entry = np.flatnonzero(rows.task == number), student.card.tasks[number]
        basis = task_parts(entry.name).basis
        if basis in BASES:
            grams = contributions(student.parts, corpus, encoded.ids, selected)
            wide[selected] = entry.intercept + grams + calendar(rows.date[selected]) @ np.asarray(entry.calendar)
        if has_trees(entry.name):
            forest_features[int(number)] = matrix = feature_matrix(corpus, selected, basis, wide[selected])
            for key in np.unique(keys[selected]):
                of = keys[selected] == key
                wide[selected[of]] = student.forests[str(key)].predict(matrix[of])
        floor = entry.scale.floor or 1e-12
        actual[selected] = np.log10(np.maximum(rows.value[selected], floor))
        position[selected] = entry.scale.position(10 ** np.clip(wide[selected], -300, 300))
        target[selected] = entry.scale.position(rows.value[selected])
    lengths = np.array([len(ids) for ids in encoded.ids])
    inputs = head_inputs(corpus, encoded.counts, lengths, position, target)
    features = Features.build(inputs, encoded.bank)
    return TuningData(
        corpus, encoded, wide, actual, keys, inputs, _evidence(student, features, len(rows)), forest_features
    )


def _evidence(student: LoadedStudent, features: Features, count: int) -> Tensor:
    head = student.head
    with torch.inference_mode():
        parts = [
            features.deep(head.deep, rows) - features.base(head.prior, rows)
            for rows in torch.arange(count).split(_BATCH)
        ]
    # Out of inference mode, so that weights which multiply it can be trained.
    return needed(head, features.inputs.task, torch.cat(parts).clone())
