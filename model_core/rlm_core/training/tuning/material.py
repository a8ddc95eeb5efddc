"""Rows as the model sees them: encodings, the head's inputs, and what its wide part or trees say of each row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.inference.features import feature_names, forest_key
from rlm_core.inference.ngram_ridge import METRICS, calendar
from rlm_core.inference.student import ENCODER
from rlm_core.inference.tokenizer import Ids, crop
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus
from rlm_core.training.student.batches import HeadInputs, head_inputs
from rlm_core.training.student.encoder_fit import Bank
from rlm_core.training.student.finish import encode_all
from rlm_core.training.student.forest_fit import Matrix
from rlm_core.training.student.head_fit import Features
from rlm_core.training.student.ngram_ridge_fit import contributions
from rlm_core.training.student.trees_fit import feature_matrix

from .student import Opened

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
class Material:
    """Everything about rows that no tuning changes, each array ``(rows, ...)``.

    ``wide`` is the model's own wide (or trees') prediction and ``actual`` the measured value, both log10 SI units and
    not below the floor; ``keys`` are forest keys; ``evidence`` are the deep part's logits beyond the query's;
    ``told`` are the features of the rows of slices with trees, by slice.
    """

    corpus: Corpus
    encoded: Encoded
    wide: Array
    actual: Array
    keys: npt.NDArray[np.str_]
    inputs: HeadInputs
    evidence: Tensor
    told: dict[int, Matrix]

    def rows_of(self, number: int) -> Rows:
        """The rows of a slice."""
        return np.flatnonzero(self.corpus.rows.task == number)

    def asked(self, student: Opened, rows: Rows, wide: Array) -> HeadInputs:
        """The head's inputs of rows of one slice, with other wide predictions ``(rows,)`` in log10."""
        scale = student.card.slices[int(self.corpus.rows.task[rows[0]])].scale if len(rows) else None
        inputs = self.inputs.rows(torch.from_numpy(rows))
        if scale is None:
            return inputs
        return replace(inputs, wide=torch.from_numpy(scale.position(10 ** np.clip(wide, -300, 300)).astype(np.float32)))


def encode(student: Opened, corpus: Corpus, encoder: Path | None = None) -> Encoded:
    """Encode the texts of a corpus as the predictor does."""
    ids = corpus.encode(student.tokenizer)
    context = student.sizes.context
    bank = encode_all(encoder or student.directory / ENCODER, [crop(one, context)[0] for one in ids])
    return Encoded(ids, np.stack([structure(*entry) for entry in corpus.texts]), bank)


def build(student: Opened, corpus: Corpus, encoded: Encoded) -> Material:
    """Ask the model's parts about the rows of a corpus whose slices are the model's."""
    rows = corpus.rows
    wide, actual = np.zeros(len(rows)), np.zeros(len(rows))
    position, target = np.zeros(len(rows)), np.zeros(len(rows))
    keys = np.array(
        [
            forest_key(corpus.tasks[number], corpus.queries[query][1], corpus.queries[query][0])
            for number, query in zip(rows.task, rows.query, strict=True)
        ]
    )
    told: dict[int, Matrix] = {}
    for number in np.unique(rows.task):
        mine, entry = np.flatnonzero(rows.task == number), student.card.slices[number]
        basis, _, metric = entry.name.split("/")
        if feature_names(basis):
            told[int(number)] = matrix = feature_matrix(corpus, mine, basis)
            for key in np.unique(keys[mine]):
                of = keys[mine] == key
                wide[mine[of]] = student.forests[str(key)].predict(matrix[of])
        elif metric in METRICS:
            grams = contributions(student.parts, corpus, encoded.ids, mine)
            wide[mine] = entry.intercept + grams + calendar(rows.date[mine]) @ np.asarray(entry.calendar)
        floor = entry.scale.floor or 1e-12
        actual[mine] = np.log10(np.maximum(rows.value[mine], floor))
        position[mine] = entry.scale.position(10 ** np.clip(wide[mine], -300, 300))
        target[mine] = entry.scale.position(rows.value[mine])
    lengths = np.array([len(ids) for ids in encoded.ids])
    inputs = head_inputs(corpus, encoded.counts, lengths, position, target)
    features = Features.build(inputs, encoded.bank)
    return Material(corpus, encoded, wide, actual, keys, inputs, _evidence(student, features, len(rows)), told)


def _evidence(student: Opened, features: Features, count: int) -> Tensor:
    head = student.head
    with torch.inference_mode():
        parts = [
            features.deep(head.deep, rows) - features.base(head.prior, rows)
            for rows in torch.arange(count).split(_BATCH)
        ]
    # Out of inference mode, so that weights which multiply it can be trained.
    return torch.cat(parts).clone()
