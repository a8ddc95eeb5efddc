"""``rlm-lsp train``: data sets and a configuration -> a trained directory, in stages that can be taken up again.

Tokenizer, wide part, encoder and head together, head alone on finished encodings, calibration, card. The directory can be
exported with ``rlm-lsp export``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file

from .. import wide
from ..bins import Scale, fit_scale
from ..card import Card, SliceCard
from ..data import functions, leethub
from ..errors import DataError
from ..onnx_predictor import TOKENIZER, WIDE
from ..student import Student
from ..tokenizer import Ids, Tokenizer, crop
from ..tokenizer import train as train_tokenizer
from .batches import head_inputs
from .config import TrainConfig, load_config
from .dataset import Corpus, floor_of, load_corpus
from .head_fit import Features, calibrate, fit_head
from .loop import Bank, Loop, Task, encode_texts
from .wide_fit import WideFit, fit_wide

WEIGHTS = "student.safetensors"
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
    console = Console(stderr=True)
    if settings.train.threads:
        torch.set_num_threads(settings.train.threads)
    console.print("reading data sets")
    corpus = load_corpus(data, ("train", "val", "cal"))
    out.mkdir(parents=True, exist_ok=True)
    _check_run(out, corpus, settings, resume)
    console.print(f"{len(corpus.rows)} rows, {len(corpus.texts)} texts, {len(corpus.slices)} slices")
    ids = corpus.encode(_tokenizer(out, corpus, settings, resume))
    console.print("fitting the wide part")
    fitted = fit_wide(corpus, ids, bits=settings.wide_bits, penalty=settings.wide_penalty)
    wide.save(fitted.parts, out / WIDE)
    scales = _scales(corpus)
    task = _task(corpus, ids, fitted, scales, settings)
    sizes = replace(settings.model, slices=len(corpus.slices))
    torch.manual_seed(settings.train.seed)
    loop = Loop(Student(sizes), task, settings.train, out)
    if resume and loop.resume():
        console.print(f"resuming at epoch {loop.epoch + 1}, step {loop.step}")
    loop.run()
    _finish(loop, corpus, fitted, scales, settings, out, console)


def _finish(
    loop: Loop,
    corpus: Corpus,
    fitted: WideFit,
    scales: list[Scale],
    settings: TrainConfig,
    out: Path,
    console: Console,
) -> None:
    """Encode, fit the head, calibrate, write."""
    rows, config = corpus.rows, settings.train
    student = loop.student
    bank = Bank(torch.zeros_like(loop.bank.vectors), torch.zeros_like(loop.bank.known))
    console.print("encoding all texts")
    encode_texts(student, loop.task.ids, np.arange(len(corpus.texts)), bank)
    features = Features.build(loop.task.inputs, bank)
    train_rows, val_rows = np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val")
    head = student.head.cpu()
    console.print("fitting the head")
    tuned = fit_head(features, train_rows, val_rows, student.config, config, start=head)
    fresh = fit_head(features, train_rows, val_rows, student.config, config)
    console.print(f"validation loss: head {loop.best:.4f}, tuned {tuned[1]:.4f}, fitted from scratch {fresh[1]:.4f}")
    head = min(tuned, fresh, key=lambda pair: pair[1])[0]
    console.print("calibrating on families left out in turn")
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
        "validation_loss": round(min(tuned[1], fresh[1]), 4),
    }
    card = Card(settings.name, student.config.to_json(), slices, calibration, _defaults(corpus), trained)
    card.write(out, [WEIGHTS, TOKENIZER, WIDE])
    console.print(f"trained model in {out}; next: rlm-lsp export --model {out} --out DIR")


def _tokenizer(out: Path, corpus: Corpus, settings: TrainConfig, resume: bool) -> Tokenizer:
    path = out / TOKENIZER
    if resume and path.exists():
        return Tokenizer.load(path)
    used = np.unique(corpus.rows.text[corpus.rows.split == "train"])
    tokenizer = train_tokenizer((corpus.texts[i][0] for i in used), settings.model.vocabulary, seed=settings.train.seed)
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
    cropped = [crop(text, settings.model.context)[0] for text in ids]
    return Task(cropped, head_inputs(rows, prior, target), rows.split, corpus.slices)


def _defaults(corpus: Corpus) -> dict[str, Any]:
    """The device and workload that a query without them means; LeetCode's "today" is the last day of the training labels."""
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
    path = out / _RUN
    if path.exists():
        if not resume:
            raise DataError(f"{out}: already holds a training run; add --resume or name another directory")
        if json.loads(path.read_text(encoding="utf-8")) != found:
            raise DataError(f"{out}: the run in it used other data or settings; name another directory")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
