"""What callees as pooled vectors buy: the head and the wide part refitted with and without them on a finished encoder.

    python tests/bench/ablate_callees.py --run RUN_DIR --data functions.parquet

Prints Spearman on the test split (unseen packages, unseen modules) for the wide part alone and for the whole model.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from rlm_core.bins import fit_scale
from rlm_core.card import read_card
from rlm_core.evaluate.metrics import spearman
from rlm_core.onnx_predictor import ENCODER, TOKENIZER
from rlm_core.student import StudentConfig
from rlm_core.tokenizer import Tokenizer, crop
from rlm_core.train.batches import head_inputs
from rlm_core.train.config import LoopConfig
from rlm_core.train.dataset import Corpus, floor_of, load_corpus
from rlm_core.train.head_fit import Features, fit_head, probabilities
from rlm_core.train.run import encode_all
from rlm_core.train.wide_fit import fit_wide


def main() -> None:
    """Run the ablation and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a directory written by rlm-lsp train")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    arguments = parser.parse_args()
    card = read_card(arguments.run)
    corpus = load_corpus(arguments.data, slices=[entry.name for entry in card.slices if entry.name.startswith("call/")])
    ids = corpus.encode(Tokenizer.load(arguments.run / TOKENIZER))
    context = int(card.sizes["context"])
    bank = encode_all(arguments.run / ENCODER, [crop(text, context)[0] for text in ids])
    sizes = replace(StudentConfig(**card.sizes), slices=len(corpus.slices))
    scales = [
        fit_scale(
            corpus.rows.value[(corpus.rows.slice == number) & (corpus.rows.split == "train")],
            floor_of(name),
        )
        for number, name in enumerate(corpus.slices)
    ]
    print("| callees | part | metric | unseen package | mean per package | unseen module |")
    print("|---|---|---|---|---|---|")
    for name, variant in (("none", _without_callees(corpus)), ("two levels", corpus)):
        rows = variant.rows
        fitted = fit_wide(variant, ids)
        lengths = np.array([len(text) for text in ids])
        target, prior = np.zeros(len(rows)), np.zeros(len(rows))
        for number, scale in enumerate(scales):
            mine = rows.slice == number
            target[mine] = scale.position(rows.value[mine])
            prior[mine] = scale.position(10 ** fitted.predictions[mine])
        features = Features.build(head_inputs(rows, lengths, prior, target), bank)
        train, val = np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val")
        head, _ = fit_head(features, train, val, sizes, LoopConfig())
        for number, scale in enumerate(scales):
            test = np.flatnonzero((rows.split == "test") & (rows.slice == number))
            medians = scale.quantiles(probabilities(features, head, test, scales), [0.5])[:, 0]
            _print(name, "wide", corpus.slices[number], fitted.predictions[test], corpus, test)
            _print(name, "model", corpus.slices[number], medians, corpus, test)


def _without_callees(corpus: Corpus) -> Corpus:
    rows = replace(corpus.rows, callees=np.full_like(corpus.rows.callees, -1))
    return replace(corpus, rows=rows)


def _print(
    name: str,
    part: str,
    where: str,
    predicted: np.ndarray[tuple[int], np.dtype[np.float64]],
    corpus: Corpus,
    test: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> None:
    rows = corpus.rows
    package = rows.held_out[test] == "package"
    families = rows.family[test]
    values = rows.value[test]
    by_package = [
        spearman(predicted[families == family], values[families == family]) or 0.0
        for family in np.unique(families[package])
    ]
    cells = (
        spearman(predicted[package], values[package]) or 0.0,
        float(np.mean(by_package)),
        spearman(predicted[~package], values[~package]) or 0.0,
    )
    print(f"| {name} | {part} | {where.rsplit('/')[-1]} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
