"""``tools.experiments.pretraining_curve``: the splits, the stages that continue, and the curve of a tiny corpus."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sentencepiece
import torch
from rlm_core.errors import DataError
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import TOKENIZER
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.tokenizer import train as train_tokenizer
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.datasets.texts import SCHEMA
from rlm_core.training.student.batches import Indices
from rlm_core.training.student.config import FORMS, PretrainConfig
from rlm_core.training.student.network import StudentConfig
from rlm_core.training.student.ngram_ridge_fit import fold_of
from rlm_core.training.student.pretrain import Pretrainer, Texts

from tests.rlm_core.training.conftest import CONFIG as TINY
from tests.rlm_core.training.conftest import function_rows
from tools.experiments import pretraining_curve
from tools.experiments.pretraining_curve import (
    JUDGED,
    SPLITS,
    VALIDATION,
    parts_of,
    pretrain_stage,
    resampled,
    resplit,
    sampled,
    spearman,
    start_of_embeddings,
)

pytestmark = pytest.mark.extras

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32)
CONFIG = PretrainConfig(tokens_per_batch=128, warmup_steps=2, compile=False)
TASKS = ["call/python/latency", "call/python/memory"]
# Twelve packages in the three splits that their folds decide.
PACKAGES = [f"lib{number}" for number in range(12)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Functions of twelve packages."""
    rows: list[dict[str, Any]] = function_rows(240)
    for place, row in enumerate(rows):
        package = PACKAGES[place // 2 % len(PACKAGES)]
        row |= {"family": package, "group": f"{package}/{row['group']}"}
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    write_rows(rows, path)
    return path


@pytest.fixture(scope="module")
def corpus(data: Path) -> Corpus:
    return resplit(load_corpus([data], SPLITS, TASKS, FORMS))


def test_a_project_group_is_in_the_split_of_its_fold(corpus: Corpus) -> None:
    expected = {package: {0: JUDGED, 1: VALIDATION}.get(fold_of(package), "train") for package in PACKAGES}
    assert set(expected.values()) == {JUDGED, VALIDATION, "train"}
    found = set(zip(corpus.rows.family.tolist(), corpus.rows.split.tolist(), strict=True))
    assert found == set(expected.items())


def test_test_rows_are_refused(data: Path) -> None:
    with pytest.raises(DataError, match="test rows"):
        resplit(load_corpus([data], (*SPLITS, "test"), TASKS, FORMS))


def test_a_share_keeps_judged_rows_and_whole_groups(corpus: Corpus) -> None:
    few = sampled(corpus, 0.5)
    for split, kept_all in ((JUDGED, True), (VALIDATION, False), ("train", False)):
        before, after = (set(one.rows.ids[one.rows.split == split].tolist()) for one in (corpus, few))
        assert after <= before
        assert (after == before) == kept_all
    groups = np.isin(corpus.rows.group, few.rows.group)
    assert sorted(corpus.rows.ids[groups].tolist()) == sorted(few.rows.ids.tolist())
    text_of = {row: corpus.texts[text] for row, text in zip(corpus.rows.ids, corpus.rows.text, strict=True)}
    for row, text in zip(few.rows.ids, few.rows.text, strict=True):
        assert few.texts[text] == text_of[row]


def test_a_stage_continues_where_the_previous_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ids = [rng.integers(10, 64, size).astype(np.int32) for size in rng.integers(8, 32, 60)]
    texts = Texts(ids, rng.normal(size=(60, 2)).astype(np.float32))
    read: list[int] = []
    load = Pretrainer.load

    def recorded(self: Pretrainer, item: Indices) -> Indices:
        read.extend(item.tolist())
        return load(self, item)

    monkeypatch.setattr(Pretrainer, "load", recorded)
    first = pretrain_stage(SIZES, texts, replace(CONFIG, tokens=400), None, tmp_path / "first")
    assert 400 <= first.tokens < 400 + CONFIG.tokens_per_batch
    assert first.batch > 0
    first.save(tmp_path / "first.pt")
    loaded = pretraining_curve.Pretrained.load(tmp_path / "first.pt")
    # A stage without tokens shows what a stage starts from.
    same = pretrain_stage(SIZES, texts, replace(CONFIG, tokens=first.tokens), loaded, tmp_path / "none")
    assert all(torch.equal(weight, same.weights[name]) for name, weight in first.weights.items())
    second = pretrain_stage(SIZES, texts, replace(CONFIG, tokens=900), loaded, tmp_path / "second")
    assert second.tokens >= 900
    assert not torch.equal(second.weights["encoder.embed.weight"], first.weights["encoder.embed.weight"])
    assert second.tokens == sum(len(ids[text]) for text in read)
    assert len(read) == len(set(read))  # no text of the epoch twice


def test_spearman_is_within_cells() -> None:
    value = np.arange(60.0)
    cells = np.repeat([0.0, 1.0], 30)
    predicted = np.stack([value, -value, np.concatenate([value[30:], value[:30]])])
    np.testing.assert_allclose(spearman(predicted, value, cells), [1, -1, 1])


def test_the_bootstrap_draws_whole_groups() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=200)
    groups = np.repeat(["a", "b"], 100)
    # Perfect in one group and reversed in the other: the draws are of both, or of one alone.
    predicted = np.where(groups == "a", value, -value)[None]
    figures = resampled(predicted, value, np.zeros(200), groups, draws=40)[:, 0]
    assert set(np.round(figures[1:], 6)) == {1.0, -1.0, np.round(figures[0], 6)}


def test_the_curve_of_a_tiny_corpus(
    data: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pretraining_curve, "TASKS", TASKS)
    config, out = tmp_path / "tiny.toml", tmp_path / "curve.json"
    config.write_text(TINY)
    tokenizer = train_tokenizer([text for text, _ in corpus.texts], 540)
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model)
    texts = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": ["def f():\n\treturn 1\n"], "language": ["python"]}, schema=SCHEMA), texts)
    arguments = [
        *("curve", "--data", str(data), "--texts", str(texts), "--config", str(config), "--out", str(out)),
        *("--tokenizer", str(tmp_path / "tokenizer.model"), "--tokens", "600", "--share", "0.9"),
    ]
    monkeypatch.setattr(sys, "argv", [*arguments, "--stages", "0", "500"])
    pretraining_curve.main()
    first = json.loads(out.read_text())
    monkeypatch.setattr(sys, "argv", [*arguments, "--stages", "0", "500", "1000"])
    pretraining_curve.main()
    curve = json.loads(out.read_text())
    assert curve["stages"][:2] == first["stages"]
    assert [stage["pretraining tokens"] // 500 for stage in curve["stages"]] == [0, 1, 2]
    for task in TASKS:
        entries = [stage["tasks"][task] for stage in curve["stages"]]
        # The base reads no encoding, so it is the same in all stages.
        assert len({entry["without deep"] for entry in entries}) == 1
        for entry in entries:
            assert entry["added"][0] == pytest.approx(entry["whole"] - entry["without deep"], abs=2e-4)
        assert curve["growth"][task].keys() == {"500 against 0", "1000 against 0", "per doubling"}
    assert capsys.readouterr().out.count("| call/python/latency |") == 2 + 3


def test_token_embeddings_start_from_word_vectors(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(builtin() / TOKENIZER)
    words = {"return": [0.0, 1.0], "self": [0.0, -1.0], "import": [3.0, 0.0], "class": [-3.0, 0.0]}
    path = tmp_path / "words.npz"
    np.savez(path, words=np.array(list(words)), vectors=np.array(list(words.values())))
    found = start_of_embeddings(path, tokenizer, replace(SIZES, vocabulary=tokenizer.size, width=2))
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    length = 0.7 * 2**0.5
    for word, expected in (("class", [length, 0.0]), ("return", [0.0, length])):
        # The directions in the order of their variance; their signs are free.
        assert found[processor.PieceToId("\u2581" + word)].abs().tolist() == pytest.approx(expected, abs=1e-6)
    np.savez(path, words=np.array(["x"]))
    with pytest.raises(DataError, match="has no word vectors"):
        start_of_embeddings(path, tokenizer, SIZES)


def test_a_text_is_cut_into_its_longest_words() -> None:
    assert parts_of("getitems", {"get", "items", "item", "s"}) == ["get", "items"]
    assert parts_of("?item!", {"item"}) == ["item"]
    assert parts_of("", {"item"}) == []
