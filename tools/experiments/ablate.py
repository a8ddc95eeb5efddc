"""The gain of each part of the model, on functions (Python) and programs (Python, C++).

    python -m tools.experiments.ablate --run RUN_DIR --config configs/student.toml --data functions.parquet \
        leethub.parquet --out ablations.json [--tokens 1200000] [--share 0.3]

Two kinds of rows. *Parts*: the head refitted on the encodings of a trained run without one of its inputs. *Encoders*:
encoders trained for the same few tokens on the same rows, with one thing changed; the deep part alone is scored.
Figures are Spearman on the ``test`` split: functions of unseen packages, programs within language and quarter.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rlm_core.inference.calibration import Scale, fit_scale
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.student import ENCODER, TOKENIZER
from rlm_core.inference.tokenizer import Ids, Tokenizer, crop
from rlm_core.inference.tokenizer import train as train_tokenizer
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, floor_of, load_corpus
from rlm_core.training.datasets.splits import TEST_PACKAGES
from rlm_core.training.student.batches import EncoderData, HeadInputs, head_inputs
from rlm_core.training.student.config import TrainConfig, load_config
from rlm_core.training.student.encoder_fit import Bank, EncoderTrainer, encode_texts
from rlm_core.training.student.head_fit import Features, fit_head, probabilities
from rlm_core.training.student.network import Head, Student
from rlm_core.training.student.ngram_ridge_fit import fit_ngram_ridge
from scipy.stats import spearmanr

_SLICES = ("call/python", "program/python", "program/cpp")
Row = dict[str, Any]


def main() -> None:
    """Run both kinds and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a directory written by rlm-lsp train")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=1_200_000, help="that each encoder reads")
    parser.add_argument("--share", type=float, default=1.0, help="share of the packages and problems to use")
    parser.add_argument("--only", choices=["parts", "encoders"], help="one of the two kinds")
    arguments = parser.parse_args()
    settings = load_config(arguments.config)
    known = load_corpus(arguments.data, ("val",)).tasks
    corpus = load_corpus(arguments.data, tasks=[name for name in known if name.rpartition("/")[0] in _SLICES])
    corpus = smaller(corpus, arguments.share)
    rows: list[Row] = []
    if arguments.only != "encoders":
        rows += parts(corpus, arguments.run, settings)
    if arguments.only != "parts":
        rows += encoders(corpus, arguments.run, settings, arguments.tokens)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def smaller(corpus: Corpus, share: float) -> Corpus:
    """The rows of a share of the groups; unseen packages, which are few, are kept."""
    rows = corpus.rows
    drawn = np.array([zlib.crc32(group.encode()) / 2**32 < share for group in rows.group])
    rows = rows.chosen(np.flatnonzero(drawn | np.isin(rows.family, list(TEST_PACKAGES))))
    used = np.unique(np.concatenate([rows.text, rows.callees[rows.callees >= 0]]))
    callees = np.where(rows.callees >= 0, np.searchsorted(used, rows.callees), -1).astype(np.int32)
    rows = replace(rows, text=np.searchsorted(used, rows.text), callees=callees)
    return replace(corpus, texts=[corpus.texts[text] for text in used], rows=rows)


def scales_of(corpus: Corpus) -> list[Scale]:
    """The outcome scales of the slices."""
    train = corpus.rows.split == "train"
    return [
        fit_scale(corpus.rows.value[train & (corpus.rows.task == number)], floor_of(name))
        for number, name in enumerate(corpus.tasks)
    ]


def on_axis(corpus: Corpus, values: npt.NDArray[np.float64], scales: list[Scale]) -> npt.NDArray[np.float64]:
    """Values on the outcome axes."""
    result = np.zeros(len(values))
    for number, scale in enumerate(scales):
        mine = corpus.rows.task == number
        result[mine] = scale.position(values[mine])
    return result


def inputs_of(corpus: Corpus, ids: list[Ids], scales: list[Scale], wide: npt.NDArray[np.float64]) -> HeadInputs:
    """The head's inputs of all rows."""
    counts = np.stack([structure(*entry) for entry in corpus.texts])
    lengths = np.array([len(text) for text in ids])
    return head_inputs(corpus, counts, lengths, wide, on_axis(corpus, corpus.rows.value, scales))


def scored(corpus: Corpus, rows: npt.NDArray[np.int64], median: npt.NDArray[np.float64]) -> dict[str, float]:
    """Spearman of test rows by basis and metric."""
    found: dict[str, list[float]] = {}
    for number, name in enumerate(corpus.tasks):
        basis, _, metric = name.split("/")
        mine = np.flatnonzero(corpus.rows.task[rows] == number)
        if basis == "call":
            cells = [mine[np.isin(corpus.rows.family[rows[mine]], list(TEST_PACKAGES))]]
        else:
            quarter = np.floor(corpus.rows.date[rows[mine]] * 4)
            cells = [mine[quarter == one] for one in np.unique(quarter)]
        figures = [
            (len(cell), spearmanr(median[cell], corpus.rows.value[rows[cell]]).statistic)
            for cell in cells
            if len(cell) >= 20
        ]
        total = sum(size for size, _ in figures)
        found.setdefault(f"{basis} {metric}", []).append(sum(size * value for size, value in figures) / total)
    return {name: round(float(np.mean(values)), 4) for name, values in found.items()}


def medians(
    features: Features, head: Head, corpus: Corpus, rows: npt.NDArray[np.int64], scales: list[Scale]
) -> npt.NDArray[np.float64]:
    """The head's medians of rows in SI units."""
    found = probabilities(features, head, rows, scales)
    result = np.zeros(len(rows))
    for number, scale in enumerate(scales):
        mine = corpus.rows.task[rows] == number
        result[mine] = scale.quantiles(found[mine], [0.5])[:, 0]
    return result


def parts(corpus: Corpus, run: Path, settings: TrainConfig) -> list[Row]:
    """The whole model without one of its inputs, on the encodings of a trained run."""
    ids = corpus.encode(Tokenizer.load(run / TOKENIZER))
    session = open_session(run / ENCODER)
    vectors = np.stack([encode(session, crop(text, settings.model.context)[0]) for text in ids])
    bank = Bank(torch.from_numpy(vectors), torch.ones(len(ids), dtype=torch.bool))
    scales = scales_of(corpus)
    bare = replace(corpus, rows=replace(corpus.rows, callees=np.full_like(corpus.rows.callees, -1)))
    whole = inputs_of(corpus, ids, scales, on_axis(corpus, 10 ** fit_ngram_ridge(corpus, ids).predictions, scales))
    alone = inputs_of(bare, ids, scales, on_axis(bare, 10 ** fit_ngram_ridge(bare, ids).predictions, scales))
    variants: dict[str, tuple[HeadInputs, Callable[[Head], object]]] = {
        "whole": (whole, lambda head: None),
        "without the encoder (deep part's weight 0)": (whole, lambda head: head.weight.data.zero_()),
        "without the wide part": (replace(whole, wide=torch.zeros_like(whole.wide)), lambda head: None),
        "without syntax counts and lengths": (replace(whole, facts=torch.zeros_like(whole.facts)), lambda head: None),
        "without callees": (alone, lambda head: None),
    }
    split = corpus.rows.split
    train, val, test = (np.flatnonzero(split == name) for name in ("train", "val", "test"))
    sizes = replace(settings.model, slices=len(corpus.tasks))
    rows: list[Row] = []
    for name, (inputs, change) in variants.items():
        features = Features.build(inputs, bank)
        head, loss = fit_head(features, train, val, sizes, settings.train)
        change(head)
        figures = scored(corpus, test, medians(features, head, corpus, test, scales))
        rows.append({"kind": "parts", "variant": name, "validation loss": round(loss, 4), **figures})
        print(rows[-1])
    return rows


def encoders(corpus: Corpus, run: Path, settings: TrainConfig, tokens: int) -> list[Row]:
    """Encoders of equal training, the deep part alone."""
    small = replace(settings.model, slices=len(corpus.tasks))
    own = Tokenizer.load(run / TOKENIZER)
    train_texts = np.unique(corpus.rows.text[corpus.rows.split == "train"])
    other = train_tokenizer((corpus.texts[i][0] for i in train_texts), 4096)
    variants = {
        "pretrained": (own, small, True),
        "not pretrained": (own, small, False),
        "context 256": (own, replace(small, context=256), False),
        "context 1,024": (own, replace(small, context=1024), False),
        "vocabulary 4,096": (other, replace(small, vocabulary=4096), False),
        "two layers": (own, replace(small, layers=2), False),
        "width 128": (own, replace(small, width=128, hidden=352), False),
    }
    scales = scales_of(corpus)
    rows: list[Row] = []
    for name, (tokenizer, sizes, pretrained) in variants.items():
        torch.manual_seed(0)
        ids = corpus.encode(tokenizer)
        inputs = inputs_of(corpus, ids, scales, np.zeros(len(corpus.rows)))
        basis = np.array([one.split("/")[0] for one in corpus.tasks])[corpus.rows.task]
        cropped = [crop(text, sizes.context)[0] for text in ids]
        task = EncoderData(cropped, inputs, corpus.rows.split, corpus.rows.group, basis)
        student = Student(sizes)
        if pretrained:
            student.encoder.load_state_dict(torch.load(run / "pretrained.pt", weights_only=True))
        lengths = np.array([len(text) for text in cropped])
        texts = int(tokens / lengths[train_texts].mean())
        config = replace(settings.train, epochs=1, texts_per_basis={"call": texts // 2, "program": texts // 2})
        with tempfile.TemporaryDirectory() as scratch:
            loop = EncoderTrainer(student, task, config, Path(scratch))
            loop.run()
        test = np.flatnonzero(corpus.rows.split == "test")
        bank = Bank(torch.zeros(len(ids), sizes.width), torch.zeros(len(ids), dtype=torch.bool))
        asked = corpus.rows.chosen(test)
        encode_texts(student, cropped, np.union1d(asked.text, asked.callees[asked.callees >= 0]), bank)
        features = Features.build(inputs, bank)
        head = student.head.eval()
        # The deep part alone: without the base, with all logits of the deep part.
        found = _deep_medians(features, head, corpus, test, scales)
        rows.append(
            {
                "kind": "encoders",
                "variant": name,
                "validation loss": round(loop.best.loss if loop.best else math.nan, 4),
                **scored(corpus, test, found),
                "tokens": loop.tokens,
            }
        )
        print(rows[-1])
    return rows


def _deep_medians(
    features: Features, head: Head, corpus: Corpus, rows: npt.NDArray[np.int64], scales: list[Scale]
) -> npt.NDArray[np.float64]:
    result = np.zeros(len(rows))
    with torch.inference_mode():
        logits = torch.cat([features.deep(head.deep, chosen) for chosen in torch.from_numpy(rows).split(4096)])
        found = logits.double().softmax(1).numpy()
    for number, scale in enumerate(scales):
        mine = corpus.rows.task[rows] == number
        result[mine] = scale.quantiles(found[mine], [0.5])[:, 0]
    return result


if __name__ == "__main__":
    main()
