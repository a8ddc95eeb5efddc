"""The end of a training run: every text encoded once, head fitted, calibrated, distances measured, card written."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from tqdm import tqdm

from rlm_core.inference.calibration import Scale
from rlm_core.inference.card import StudentCard, TaskCard
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.features import answers_alone
from rlm_core.inference.ngram_ridge import part_name
from rlm_core.inference.novelty import DISTANCE, fit_novelty_detector
from rlm_core.inference.residuals import Residuals
from rlm_core.inference.student import ENCODER, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.inference.tokenizer import Ids
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.corpus import Corpus, default_queries_of, known_devices
from rlm_core.training.datasets.schema import Edit
from rlm_core.training.runs import say

from .config import TrainConfig
from .cost_ratio_fit import fit_cost_ratios
from .encoder_fit import Bank, EncoderTrainer
from .export import WEIGHTS, export_encoder
from .head_fit import Features, calibrate, fit_head, log_medians
from .network import Head
from .ngram_ridge_fit import LinearTerms

HEAD_STAGE = "head and calibration"


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
    weights = ", ".join(f"{name} {value:.2f}" for name, value in zip(corpus.tasks, head.weight.tolist(), strict=True))
    say(f"weights of the deep part: {weights}")
    say("calibrating on families left out in turn")

    def head_of(train: npt.NDArray[np.int64], val: npt.NDArray[np.int64]) -> Head:
        return fit_head(features, train, val, student.config, config)[0]

    calibration = calibrate(features, corpus, head, run.scales, head_of)
    changes = fit_cost_ratios(corpus, log_medians(features, head, corpus, run.scales), run.change_roles, edits)
    student.head = head
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in student.state_dict().items()}
    save_file(tensors, out / WEIGHTS)
    parts = texts_by_prefix(corpus, bank.vectors.numpy())
    fit_novelty_detector(parts["train"], parts["cal"]).save(out / DISTANCE)
    slices = []
    for name, scale in zip(corpus.tasks, run.scales, strict=True):
        terms = run.terms.get(name, LinearTerms(0.0, []))
        slices.append(TaskCard(name, scale, terms.intercept, tuple(terms.calendar)))
    trained = {
        "rows": int((rows.split == "train").sum()),
        "texts": len(run.trainer.sampler.texts),
        "tokens": run.trainer.tokens,
        "epochs": config.epochs,
        **({"pretraining_tokens": run.settings.pretrain.tokens} if run.start is None else {"start": run.start}),
        "validation_loss": round(reached, 4),
        "deep_weights": {name: round(value, 3) for name, value in zip(corpus.tasks, head.weight.tolist(), strict=True)},
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
