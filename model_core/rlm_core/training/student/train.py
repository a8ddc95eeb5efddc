"""``rlm-lsp train``: data sets and a configuration -> a trained directory, in stages that can be resumed.

Tokenizer, pretraining without labels, n-gram ridge and trees, encoder and deep head on labels, head alone on finished
encodings, calibration, card. The directory can be exported with ``rlm-lsp export``.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from tqdm import tqdm

from rlm_core.files import atomic_write
from rlm_core.inference import ngram_ridge
from rlm_core.inference.calibration import Scale, fit_scale
from rlm_core.inference.card import StudentCard, TaskCard
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.features import answers_alone, has_trees
from rlm_core.inference.model_store import find
from rlm_core.inference.ngram_ridge import part_name
from rlm_core.inference.novelty import DISTANCE, fit_novelty_detector
from rlm_core.inference.residuals import Residuals
from rlm_core.inference.student import ENCODER, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.inference.tokenizer import Ids, Tokenizer, crop
from rlm_core.queries.query_vector import task_parts
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, default_queries_of, floor_of, known_devices, load_corpus
from rlm_core.training.datasets.schema import Edit, read_edits
from rlm_core.training.runs import SPLITS, claim_run, fit_tokenizer, require_splits, say

from .batches import EncoderData, head_inputs
from .config import FORMS, TrainConfig, load_config
from .cost_ratio_fit import fit_cost_ratios
from .encoder_fit import Bank, EncoderTrainer
from .export import WEIGHTS, Start, export_encoder
from .head_fit import Features, as_dropped, calibrate, deep_weight_of, drop_encoder, fit_head, log_medians
from .network import Head, Student
from .ngram_ridge_fit import LinearTerms, fit_ngram_ridge
from .pretrain import Texts, pretrain, pretraining_texts, standardised, synthetic_targets
from .trees_fit import TreesFit, answerable, fit_trees, load_fit, save_fit

HEAD_STAGE = "head and calibration"
_PRETRAINED, _TIMES, _GROWN = "pretrained.pt", "times.json", "grown.npz"


@dataclass(slots=True)
class Trained:
    """The results of the earlier stages; ``start`` is the id of the student whose encoder was trained further."""

    trainer: EncoderTrainer
    corpus: Corpus
    terms: dict[str, LinearTerms]
    residuals: dict[str, Residuals]
    change_roles: npt.NDArray[np.float64]
    scales: list[Scale]
    settings: TrainConfig
    seconds: dict[str, float]
    start: str | None


def finish(run: Trained, edits: Iterable[Edit], out: Path) -> None:
    """Encode, fit the head, calibrate, write the trained directory."""
    began = time.monotonic()
    corpus, rows, config = run.corpus, run.corpus.rows, run.settings.train
    student = run.trainer.model.cpu().eval()
    say("encoding all texts with the exported encoder")
    export_encoder(student, out / ENCODER)
    bank = encode_all(out / ENCODER, run.trainer.data.ids)
    features = Features.build(run.trainer.data.inputs, bank)
    alone = [answers_alone(name) for name in corpus.tasks]
    headed = ~np.array(alone)[rows.task]
    train_rows, val_rows = (np.flatnonzero(headed & (rows.split == split)) for split in ("train", "val"))
    say("fitting the head")
    deep_alone = run.trainer.best.loss if run.trainer.best is not None else math.nan
    joint = fit_head(features, train_rows, val_rows, student.config, config, deep=student.head.deep)
    fresh = fit_head(features, train_rows, val_rows, student.config, config)
    say(f"validation loss: deep part alone {deep_alone:.4f}, whole {joint[1]:.4f}, with a new deep head {fresh[1]:.4f}")
    head, reached = min(joint, fresh, key=lambda pair: pair[1])
    gains = drop_encoder(features, head, corpus, run.scales, val_rows)
    say(f"gains of the encoder: {', '.join(f'{name} {gain:.3f}' for name, gain in gains.items())}")
    weights = ", ".join(f"{name} {value:.2f}" for name, value in zip(corpus.tasks, head.weight.tolist(), strict=True))
    say(f"weights of the deep part: {weights}")
    say("calibrating on families left out in turn")

    def head_of(train: npt.NDArray[np.int64], val: npt.NDArray[np.int64]) -> Head:
        return as_dropped(fit_head(features, train, val, student.config, config)[0], head)

    calibration = calibrate(features, corpus, head, run.scales, head_of)
    changes = fit_cost_ratios(corpus, log_medians(features, head, corpus, run.scales), run.change_roles, edits)
    student.head = head
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in student.state_dict().items()}
    save_file(tensors, out / WEIGHTS)
    slices = []
    for name, scale, weight in zip(corpus.tasks, run.scales, head.weight.tolist(), strict=True):
        terms = run.terms.get(name, LinearTerms(0.0, []))
        slices.append(TaskCard(name, scale, terms.intercept, tuple(terms.calendar), deep_weight_of(name, weight)))
    read = {entry.name.rpartition("/")[0] for entry in slices if entry.deep_weight > 0}
    parts = {
        split: {name: vectors for name, vectors in found.items() if name.partition("@")[0] in read}
        for split, found in texts_by_prefix(corpus, bank.vectors.numpy()).items()
    }
    fit_novelty_detector(parts["train"], parts["cal"]).save(out / DISTANCE)
    trained = {
        "rows": int((rows.split == "train").sum()),
        "texts": len(run.trainer.sampler.texts),
        "tokens": run.trainer.tokens,
        "epochs": config.epochs,
        **({"pretraining_tokens": run.settings.pretrain.tokens} if run.start is None else {"start": run.start}),
        "validation_loss": round(reached, 4),
        # The stage that writes the card is not in it yet.
        "seconds": {**run.seconds, HEAD_STAGE: round(time.monotonic() - began, 1)},
    }
    card = StudentCard(
        run.settings.name,
        student.config.to_json(),
        slices,
        calibration,
        default_queries_of(corpus),
        known_devices(corpus),
        run.residuals,
        changes,
        trained,
        forms=corpus.forms,
    )
    card.write(out, [WEIGHTS, TOKENIZER, NGRAM_RIDGE, TREES, DISTANCE])
    say(f"trained model in {out}; next: rlm-lsp export --model {out} --out DIR")


def encode_all(encoder: Path, ids: list[Ids]) -> Bank:
    """The vectors of all texts as the shipped encoder gives them, so that the head is fitted to what it will see."""
    session = open_session(encoder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        encoded = pool.map(lambda text: encode(session, text), ids)
        vectors = list(tqdm(encoded, desc="encoding", total=len(ids), unit="text", disable=None))
    return Bank(torch.from_numpy(np.stack(vectors)), torch.ones(len(ids), dtype=torch.bool))


def texts_by_prefix(corpus: Corpus, vectors: npt.NDArray[np.float32]) -> dict[str, dict[str, npt.NDArray[np.float32]]]:
    """The vectors of the texts of ``train`` and ``cal`` rows: what distances are fitted to.

    By ``basis/language``, for programs of each judge (:func:`rlm_core.inference.ngram_ridge.part_name`).
    """
    parts: dict[str, dict[str, npt.NDArray[np.float32]]] = {"train": {}, "cal": {}}
    names = np.array([part_name(task_parts(name)) for name in corpus.tasks])[corpus.rows.task]
    for name in np.unique(names).tolist():
        for split, found in parts.items():
            texts = np.unique(corpus.rows.text[(names == name) & (corpus.rows.split == split)])
            if len(texts):
                found[name] = vectors[texts]
    return parts


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
