"""``rlm-lsp train`` with ``kind = "full"``: data sets and a configuration -> a model directory for ``--model``.

The directory holds the model, its calibration, checkpoints and logs. Calibration is conformal on whole groups of the
``cal`` split. Where enough of its families (packages, problems) have no row in training, only these count, so that the
stated coverage is one of unseen families; elsewhere it is one of unseen groups.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from rlm_core.inference.calibration import MIN_GROUPS, Calibration, parents
from rlm_core.inference.model_store import find
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.corpus import Corpus, default_queries_of, floor_of, known_devices, load_corpus
from rlm_core.training.distributed import Processes
from rlm_core.training.runs import SPLITS, claim_run, fit_tokenizer, require_splits, say
from rlm_core.training.trainer import trained

from . import store
from .encoders.base import TextEncoder
from .encoders.scratch import ScratchEncoder
from .encoders.t5gemma import T5GemmaEncoder
from .model import FullModel
from .model_fit import FullTrainer, scores
from .store import Serving, autocast
from .training_config import FullTrainConfig, load_config
from .training_data import Examples, Ids, examples


def train(
    data: Sequence[Path],
    config: Path,
    out: Path,
    *,
    resume: bool = False,
    processes: Processes | None = None,
) -> None:
    """Train a full model on the ``train`` split of data sets, choose it on ``val``, calibrate it on ``cal``.

    Args:
        data: Parquet files of ``rlm-lsp data build``.
        config: a TOML file, see :mod:`rlm_core.training.full.training_config`.
        out: where checkpoints, the log and the model go.
        resume: continue from the checkpoint in ``out``.
        processes: those that train together, each of which calls this; None for a single process.

    Raises:
        DataError: unusable data or configuration, or ``out`` holds a run of something else.
        ModelError: the encoder's base model cannot be had.
    """
    processes = processes or Processes()
    with processes.together():
        settings = load_config(config)
        if settings.train.threads:
            torch.set_num_threads(settings.train.threads)
        say("reading data sets")
        corpus = load_corpus(data, SPLITS)
        require_splits(corpus, data)
    processes.once(lambda: claim_run(out, corpus, {"kind": "full", **asdict(settings)}, resume=resume))
    tokens = processes.once(lambda: _tokenizer(corpus, settings, out, resume))
    with processes.together():
        torch.manual_seed(settings.train.seed)
        model = _new_model(corpus, settings, tokens)
        found = examples(corpus, model, settings.train.callees)
    total, own = (sum(w.numel() for w in some) for some in (model.parameters(), trained(model).values()))
    say(f"{len(corpus.rows)} rows, {len(found.texts)} texts; {total:,} parameters, {own:,} of them trained")
    if cropped := sum(lost > 0 for lost in found.cropped):
        say(f"{cropped} texts are longer than {model.encoder.max_tokens} tokens and lose their middle")
    trainer = FullTrainer(model, found, settings.train, out, processes)
    with processes.together():
        if resume and trainer.resume():
            say(f"resuming at epoch {trainer.epoch + 1}, step {trainer.step}")
    began = time.monotonic()
    trainer.run()
    say("calibrating")
    calibration = calibrate(trainer, found)
    seconds = round(time.monotonic() - began, 1)
    processes.once(lambda: _save(trainer, corpus, settings, calibration, seconds))


def _save(
    trainer: FullTrainer, corpus: Corpus, settings: FullTrainConfig, calibration: Calibration, seconds: float
) -> None:
    """Write the trained model next to the checkpoints of its trainer."""
    model, out, best = trainer.model, trainer.out, trainer.best
    floors = {name: floor_of(name) for name in corpus.tasks}
    serving = Serving(floors, known_devices(corpus), default_queries_of(corpus), calibration, settings.train.callees)
    facts = {
        "rows": int((corpus.rows.split == "train").sum()),
        "tokens": trainer.tokens,
        "numbers": trainer.numbers,
        "steps": trainer.step,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "validation_spearman": round(best.spearman or 0.0, 4) if best else None,
        "validation_loss": round(best.loss, 4) if best else None,
        "seconds": seconds,
        **serving.write(out),
    }
    model.encoder.recompute(False)
    card = store.save(model.cpu(), out, settings.name, facts)
    say(f"trained model {card.model_id} in {out}; use it with --model {out}")


def calibrate(trainer: FullTrainer, data: Examples) -> Calibration:
    """The levels of a trained model on the ``cal`` split, by basis, language, metric and device."""
    rows, groups = _calibration_rows(data)
    mixed, budget = autocast(trainer.device), trainer.config.tokens_per_batch
    found = trainer.processes.spread(rows, data.text[rows], lambda own: scores(trainer.model, data, own, mixed, budget))
    queries = [data.queries[number] for number in data.query[rows]]
    names = [parents(query.basis, query.language, query.metric, query.device or "") for query in queries]
    return Calibration.fit(names, found, groups)


def _calibration_rows(data: Examples) -> tuple[Ids, npt.NDArray[np.str_]]:
    """The rows to calibrate on and the group of each, by basis and language."""
    rows = data.corpus.rows
    chosen, groups = [], []
    for prefix in data.corpus.prefixes():
        mine = data.corpus.rows_of(prefix)
        cal = mine[rows.split[mine] == "cal"]
        unseen = cal[~np.isin(rows.family[cal], rows.family[mine[rows.split[mine] == "train"]])]
        enough = len(np.unique(rows.family[unseen])) >= MIN_GROUPS
        chosen.append(unseen if enough else cal)
        groups.append(rows.family[unseen] if enough else rows.group[cal])
    return np.concatenate(chosen), np.concatenate(groups)


def _new_model(corpus: Corpus, settings: FullTrainConfig, tokenizer: bytes) -> FullModel:
    encoder: TextEncoder
    if settings.encoder.kind == "t5gemma":
        encoder = T5GemmaEncoder(settings.encoder.pretrained())
    elif settings.encoder.start:
        encoder = ScratchEncoder.from_student(find(settings.encoder.start), settings.encoder.max_tokens)
    else:
        encoder = ScratchEncoder(settings.encoder.scratch(), Tokenizer(tokenizer))
    languages = tuple(sorted({name.split("/")[1] for name in corpus.tasks}))
    return FullModel(settings.model(encoder.width, languages), encoder)


def _tokenizer(corpus: Corpus, settings: FullTrainConfig, out: Path, resume: bool) -> bytes:
    """The SentencePiece model of an encoder from scratch; empty for one that brings its own."""
    if settings.encoder.kind != "scratch" or settings.encoder.start:
        return b""
    if settings.encoder.tokenizer:
        return Tokenizer.load(Path(settings.encoder.tokenizer)).model
    rows = corpus.rows
    own = np.unique(rows.text[rows.split == "train"])
    texts = [corpus.texts[i] for i in own]
    return fit_tokenizer(out, texts, settings.encoder.vocabulary, settings.train.seed, resume, "encoder").model
