"""``rlm-lsp train``: data sets and a configuration -> a trained directory, in stages that can be taken up again.

Tokenizer, wide part, encoder and head together, head alone on finished encodings, calibration, card. The directory
can be exported with ``rlm-lsp export``.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tqdm import tqdm

from .. import wide
from ..bins import Scale, fit_scale
from ..card import Card, SliceCard
from ..data import functions, leethub
from ..errors import DataError
from ..export import WEIGHTS, export_encoder
from ..onnx_predictor import ENCODER, TOKENIZER, WIDE, encode, open_session
from ..student import Student
from ..tokenizer import Ids, Tokenizer, crop
from ..tokenizer import train as train_tokenizer
from .batches import head_inputs
from .config import TrainConfig, load_config
from .dataset import Corpus, floor_of, load_corpus
from .head_fit import Features, calibrate, fit_head
from .loop import Bank, Loop, Task
from .wide_fit import WideFit, fit_wide

_RUN = "run.json"
DEVICES = {"call": functions.DEVICE, "program": leethub.DEVICE}


def train(data: Sequence[Path], config: Path, out: Path, *, resume: bool = False) -> None:
    """Train a student on the ``train`` split of data sets.

    Args:
        data: Parquet files of ``rlm-lsp data build``.
        config: a TOML file, see :mod:`rlm_core.train.config`.
        out: where checkpoints, the log and the trained model go.
        resume: go on with the checkpoint in ``out``.

    Raises:
        DataError: unusable data or configuration, or ``out`` holds a run of something else.
    """
    settings = load_config(config)
    if settings.train.threads:
        torch.set_num_threads(settings.train.threads)
    _say("reading data sets")
    corpus = load_corpus(data, ("train", "val", "cal"))
    for split in ("train", "val", "cal"):
        if split not in corpus.rows.split:
            names = ", ".join(map(str, data))
            raise DataError(f"{names}: no rows of split {split}; build a data set with --split auto")
    out.mkdir(parents=True, exist_ok=True)
    _check_run(out, corpus, settings, resume)
    _say(f"{len(corpus.rows)} rows, {len(corpus.texts)} texts, {len(corpus.slices)} slices")
    ids = corpus.encode(_tokenizer(out, corpus, settings, resume))
    _say("fitting the wide part")
    fitted = fit_wide(corpus, ids, bits=settings.wide_bits, penalty=settings.wide_penalty)
    wide.save(fitted.parts, out / WIDE)
    scales = _scales(corpus)
    task = _task(corpus, ids, fitted, scales, settings)
    sizes = replace(settings.model, slices=len(corpus.slices))
    torch.manual_seed(settings.train.seed)
    loop = Loop(Student(sizes), task, settings.train, out)
    if resume and loop.resume():
        _say(f"resuming at epoch {loop.epoch + 1}, step {loop.step}")
    loop.run()
    _finish(loop, corpus, fitted, scales, settings, out)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _finish(
    loop: Loop,
    corpus: Corpus,
    fitted: WideFit,
    scales: list[Scale],
    settings: TrainConfig,
    out: Path,
) -> None:
    """Encode, fit the head, calibrate, write."""
    rows, config = corpus.rows, settings.train
    student = loop.student.cpu().eval()
    _say("encoding all texts with the exported encoder")
    export_encoder(student, out / ENCODER)
    features = Features.build(loop.task.inputs, encode_all(out / ENCODER, loop.task.ids))
    train_rows, val_rows = np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val")
    _say("fitting the head")
    joint = fit_head(features, train_rows, val_rows, student.config, config, deep=student.head.deep)
    anew = fit_head(features, train_rows, val_rows, student.config, config)
    _say(
        f"validation loss: deep part alone {loop.best:.4f}, whole {joint[1]:.4f}, with the deep head anew {anew[1]:.4f}"
    )
    head, reached = min(joint, anew, key=lambda pair: pair[1])
    _say("weights of the deep part: " + " ".join(f"{value:.2f}" for value in head.weight.tolist()))
    _say("calibrating on families left out in turn")
    calibration = calibrate(features, corpus, head, scales, DEVICES, student.config, config)
    student.head = head
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in student.state_dict().items()}
    save_file(weights, out / WEIGHTS)
    slices = [
        SliceCard(name, scale, fitted.terms[name].intercept, tuple(fitted.terms[name].calendar))
        for name, scale in zip(corpus.slices, scales, strict=True)
    ]
    trained = {
        "rows": int((rows.split == "train").sum()),
        "texts": len(loop.texts),
        "tokens": loop.tokens,
        "epochs": config.epochs,
        "validation_loss": round(reached, 4),
    }
    card = Card(settings.name, student.config.to_json(), slices, calibration, _defaults(corpus), trained)
    card.write(out, [WEIGHTS, TOKENIZER, WIDE])
    _say(f"trained model in {out}; next: rlm-lsp export --model {out} --out DIR")


def encode_all(encoder: Path, ids: list[Ids]) -> Bank:
    """The vectors of all texts as the shipped encoder gives them, so that the head is fitted to what it will see."""
    session = open_session(encoder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        encoded = pool.map(lambda text: encode(session, text), ids)
        vectors = list(tqdm(encoded, desc="encoding", total=len(ids), unit="text", disable=None))
    return Bank(torch.from_numpy(np.stack(vectors)), torch.ones(len(ids), dtype=torch.bool))


def _tokenizer(out: Path, corpus: Corpus, settings: TrainConfig, resume: bool) -> Tokenizer:
    path = out / TOKENIZER
    if resume and path.exists():
        return Tokenizer.load(path)
    used = np.unique(corpus.rows.text[corpus.rows.split == "train"])
    size = settings.model.vocabulary
    try:
        tokenizer = train_tokenizer((corpus.texts[i][0] for i in used), size, seed=settings.train.seed)
    except RuntimeError:
        raise DataError(f"{len(used)} texts are too few for a vocabulary of {size}; lower it in [model]") from None
    path.write_bytes(tokenizer.model)
    return tokenizer


def _scales(corpus: Corpus) -> list[Scale]:
    train_rows = corpus.rows.split == "train"
    return [
        fit_scale(corpus.rows.value[train_rows & (corpus.rows.slice == number)], floor_of(name))
        for number, name in enumerate(corpus.slices)
    ]


def _task(corpus: Corpus, ids: list[Ids], fitted: WideFit, scales: list[Scale], settings: TrainConfig) -> Task:
    rows = corpus.rows
    target, prior = np.zeros(len(rows)), np.zeros(len(rows))
    for number, scale in enumerate(scales):
        mine = rows.slice == number
        target[mine] = scale.position(rows.value[mine])
        prior[mine] = scale.position(10 ** fitted.predictions[mine])
    lengths = np.array([len(text) for text in ids])
    cropped = [crop(text, settings.model.context)[0] for text in ids]
    return Task(cropped, head_inputs(rows, lengths, prior, target), rows.split, rows.group)


def _defaults(corpus: Corpus) -> dict[str, Any]:
    """The device and workload that a query without them means; "today" is the last day of the training labels."""
    defaults: dict[str, Any] = {"call": {"device": functions.DEVICE, "workload": dict(functions.RUNTIME)}}
    years = corpus.rows.date[corpus.rows.split == "train"]
    if years.max() > 0:
        year = int(years.max())
        today = date(year, 1, 1) + timedelta(days=int((years.max() - year) * 365.25))
        defaults["program"] = {
            "device": leethub.DEVICE,
            "workload": {"judge": "leetcode", "date": today.isoformat()},
        }
    return defaults


def _check_run(out: Path, corpus: Corpus, settings: TrainConfig, resume: bool) -> None:
    """Refuse to mix two runs in one directory."""
    digest = hashlib.sha256()
    for name, split in zip(corpus.rows.ids, corpus.rows.split, strict=True):
        digest.update(f"{name}\t{split}\n".encode())
    found = {"data": digest.hexdigest(), "model": asdict(settings.model), "train": asdict(settings.train)}
    found["wide"] = {"bits": settings.wide_bits, "penalty": settings.wide_penalty}
    path = out / _RUN
    if path.exists():
        if not resume:
            raise DataError(f"{out}: already holds a training run; add --resume or name another directory")
        if json.loads(path.read_text(encoding="utf-8")) != found:
            raise DataError(f"{out}: the run in it used other data or settings; name another directory")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
