"""``rlm-lsp train``: data sets and a configuration -> a trained directory, in stages that can be resumed.

Tokenizer, pretraining without labels, n-gram ridge and trees, encoder and deep head on labels, head alone on finished
encodings, calibration, card. The directory can be exported with ``rlm-lsp export``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.files import atomic_write
from rlm_core.inference import ngram_ridge
from rlm_core.inference.calibration import Scale, fit_scale
from rlm_core.inference.features import has_trees
from rlm_core.inference.model_store import find
from rlm_core.inference.student import NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.inference.tokenizer import Ids, Tokenizer, crop
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, floor_of, load_corpus
from rlm_core.training.datasets.schema import read_edits
from rlm_core.training.runs import SPLITS, claim_run, fit_tokenizer, require_splits, say

from .batches import EncoderData, head_inputs
from .config import FORMS, TrainConfig, load_config
from .encoder_fit import EncoderTrainer
from .encoder_weights import Start
from .finish import HEAD_STAGE, Trained, finish
from .network import Student
from .ngram_ridge_fit import fit_ngram_ridge
from .pretrain import Texts, pretrain, standardised, synthetic_targets
from .pretraining_texts import pretraining_texts
from .trees_fit import TreesFit, answerable, fit_trees, load_fit, save_fit

_PRETRAINED, _TIMES, _GROWN = "pretrained.pt", "times.json", "grown.npz"


class Teaching(Protocol):
    """A source that a student learns from besides the labels; its name distinguishes runs."""

    name: str

    def extended(
        self, task: EncoderData, corpus: Corpus, scales: list[Scale], settings: TrainConfig, out: Path
    ) -> EncoderData:
        """The task of the encoder with a teacher's targets, perhaps for more texts than the corpus has."""
        ...


def train(
    data: Sequence[Path],
    config: Path | TrainConfig,
    out: Path,
    *,
    texts: Sequence[Path] = (),
    resume: bool = False,
    teaching: Teaching | None = None,
) -> None:
    """Train a student on the ``train`` split of data sets.

    Args:
        data: Parquet files of ``rlm-lsp data build``.
        config: settings or a TOML file of them, see :mod:`rlm_core.training.student.config`.
        out: where checkpoints, the log and the trained model go.
        texts: files of unlabelled texts (``rlm-lsp data build texts``) to pretrain on besides the data sets.
        resume: continue from the checkpoint in ``out``.
        teaching: a teacher for encoder and deep head; see :mod:`rlm_core.training.student.distill`.

    Raises:
        DataError: unusable data or configuration, or ``out`` holds a run of something else.
        ModelError: the student to start from cannot be read.
    """
    settings = config if isinstance(config, TrainConfig) else load_config(config)
    start = Start.read(find(settings.pretrain.start)) if settings.pretrain.start else None
    if start is not None:
        settings = replace(settings, model=start.sized(settings.model))
    if settings.train.threads:
        torch.set_num_threads(settings.train.threads)
    say("reading data sets")
    corpus = answerable(load_corpus(data, SPLITS, forms=FORMS))
    require_splits(corpus, data)
    teachers = {
        **({"teacher": teaching.name} if teaching is not None else {}),
        **({"start": start.model_id} if start is not None else {}),
    }
    claim_run(out, corpus, {**asdict(settings), **teachers}, resume=resume)
    say(f"{len(corpus.rows)} rows, {len(corpus.texts)} texts, {len(corpus.tasks)} tasks")
    unlabelled = pretraining_texts(corpus, texts)
    if start is not None:
        with atomic_write(out / TOKENIZER) as partial:
            partial.write_bytes(start.tokenizer.model)
        tokenizer = start.tokenizer
    else:
        tokenizer = fit_tokenizer(out, unlabelled, settings.model.vocabulary, settings.train.seed, resume)
    ids = corpus.encode(tokenizer)
    sizes = replace(settings.model, slices=len(corpus.tasks))
    torch.manual_seed(settings.train.seed)
    student = Student(sizes)
    if start is not None:
        student.encoder.load_state_dict(start.encoder.state_dict())
    else:
        with _timed(out, "pretraining"):
            _pretrain(student, unlabelled, tokenizer, settings, out, resume)
    scales = fit_scales(corpus)
    thin = _thinned(corpus, settings.train.rows_per_task, settings.train.seed)
    few = replace(corpus, rows=corpus.rows.chosen(thin))
    task = _task(few, ids, scales, settings)
    taught = teaching.extended(task, few, scales, settings, out) if teaching is not None else task
    trainer = EncoderTrainer(student, taught, settings.train, out)
    if resume and trainer.resume():
        say(f"resuming at epoch {trainer.epoch + 1}, step {trainer.step}")
    with _timed(out, "encoder"):
        trainer.run()
    trainer.data = task  # the head is fitted to labels alone
    with _timed(out, "n-gram ridge and trees"):
        say("fitting the n-gram ridge")
        fitted = fit_ngram_ridge(corpus, ids, bits=settings.ngram_bits, penalty=settings.ngram_penalty)
        ngram_ridge.save(fitted.parts, out / NGRAM_RIDGE)
        say("fitting the trees")
        planted = np.array([has_trees(name) for name in corpus.tasks])[corpus.rows.task]
        grown = _grown(corpus, settings, fitted.predictions, out, resume)
        predictions = np.where(planted, grown.predictions, fitted.predictions)[thin]
        trainer.data.inputs.wide[:] = torch.from_numpy(positions(few, 10**predictions, scales).astype(np.float32))
    with _timed(out, HEAD_STAGE):
        origin = start.model_id if start is not None else None
        made = Trained(
            trainer, few, fitted.terms, grown.residuals, fitted.changes[thin], scales, settings, times(out), origin
        )
        finish(made, read_edits(data, ("train",)), out)


def _grown(corpus: Corpus, settings: TrainConfig, ridge: npt.NDArray[np.float64], out: Path, resume: bool) -> TreesFit:
    """The forests: newly fitted, or those that the run has already fitted."""
    rest = out / _GROWN
    if resume and rest.exists():
        return load_fit(out / TREES, rest)
    grown = fit_trees(corpus, settings.trees, ridge)
    save_fit(grown, out / TREES, rest)
    return grown


def times(out: Path) -> dict[str, float]:
    """Seconds that each stage of a run took, all its parts added up."""
    path = out / _TIMES
    found: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


@contextmanager
def _timed(out: Path, stage: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        found = times(out)
        found[stage] = round(found.get(stage, 0.0) + time.monotonic() - began, 1)
        with atomic_write(out / _TIMES) as partial:
            partial.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _pretrain(
    student: Student,
    texts: list[tuple[str, str]],
    tokenizer: Tokenizer,
    settings: TrainConfig,
    out: Path,
    resume: bool,
) -> None:
    """Pretrain the student's encoder, or load the one that the run has pretrained already."""
    if not settings.pretrain.tokens:
        return
    path = out / _PRETRAINED
    if not (resume and path.exists()):
        say("pretraining")
        ids = [crop(tokenizer.encode(*entry), settings.model.context)[0] for entry in texts]
        targets = standardised(synthetic_targets(texts))
        pretrain(student.encoder, settings.model, Texts(ids, targets), settings.pretrain, out, resume=resume)
        with atomic_write(path) as partial:
            torch.save(student.encoder.state_dict(), partial)
    student.encoder.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))


def fit_scales(corpus: Corpus) -> list[Scale]:
    """The outcome scale of each task, from its training values."""
    train_rows = corpus.rows.split == "train"
    return [
        fit_scale(corpus.rows.value[train_rows & (corpus.rows.task == number)], floor_of(name))
        for number, name in enumerate(corpus.tasks)
    ]


def positions(corpus: Corpus, values: npt.NDArray[np.float64], scales: list[Scale]) -> npt.NDArray[np.float64]:
    """Values (SI units) of the corpus' rows on their outcome axes, ``(rows,)``."""
    result = np.zeros(len(corpus.rows))
    for number, scale in enumerate(scales):
        mine = corpus.rows.task == number
        result[mine] = scale.position(values[mine])
    return result


def _thinned(corpus: Corpus, most: int, seed: int) -> npt.NDArray[np.int64]:
    """At most ``most`` rows of each task and split: an architecture on sixty devices is one text to the encoder."""
    rng = np.random.default_rng(seed)
    kept = []
    for split in np.unique(corpus.rows.split):
        for number in range(len(corpus.tasks)):
            mine = np.flatnonzero((corpus.rows.split == split) & (corpus.rows.task == number))
            kept.append(rng.choice(mine, most, replace=False) if len(mine) > most else mine)
    return np.sort(np.concatenate(kept))


def _task(corpus: Corpus, ids: list[Ids], scales: list[Scale], settings: TrainConfig) -> EncoderData:
    """Build the data of the training loop; ridge predictions, which only the head's base reads, are still zeros."""
    rows = corpus.rows
    target = positions(corpus, rows.value, scales)
    lengths = np.array([len(text) for text in ids])
    cropped = [crop(text, settings.model.context)[0] for text in ids]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        counts = np.stack(list(pool.map(_structure, corpus.texts, chunksize=500)))
    basis = np.array([name.split("/")[0] for name in corpus.tasks])[rows.task]
    return EncoderData(
        cropped, head_inputs(corpus, counts, lengths, np.zeros(len(rows)), target), rows.split, rows.group, basis
    )


def _structure(entry: tuple[str, str]) -> npt.NDArray[np.float32]:
    return structure(*entry)
