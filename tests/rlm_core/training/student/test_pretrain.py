"""Pretraining: what is hidden, what is learned, and that a stopped run goes on as if it had not been."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render
from rlm_core.source.syntax_counts import NAMES, structure
from rlm_core.training.corpus import Corpus
from rlm_core.training.datasets.texts import SCHEMA
from rlm_core.training.student.batches import Indices
from rlm_core.training.student.config import PretrainConfig
from rlm_core.training.student.network import Encoder, StudentConfig
from rlm_core.training.student.pretrain import (
    TARGETS,
    Pretrainer,
    Texts,
    hide_spans,
    pretrain,
    pretraining_texts,
    standardised,
    synthetic_targets,
)

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32)
CONFIG = PretrainConfig(tokens=6000, tokens_per_batch=256, warmup_steps=2, compile=False, checkpoint_minutes=0)


@pytest.fixture(scope="module")
def texts() -> Texts:
    """Texts that repeat themselves, and two numbers that follow from them."""
    rng = np.random.default_rng(0)
    ids = []
    for _ in range(60):
        pattern = rng.integers(10, 64, 3)
        ids.append(np.array([2, *np.tile(pattern, int(rng.integers(3, 10)))], np.int32))
    amounts = np.array([[len(text), text[1]] for text in ids], np.float32)
    amounts[::5, 1] = np.nan
    return Texts(ids, standardised(amounts))


def fresh() -> Encoder:
    torch.manual_seed(0)
    return Encoder(SIZES)


def run(texts: Texts, out: Path, config: PretrainConfig = CONFIG, *, resume: bool = False) -> Encoder:
    out.mkdir(exist_ok=True)
    encoder = fresh()
    pretrain(encoder, SIZES, texts, config, out, resume=resume)
    return encoder


@given(st.integers(0, 99), st.floats(0.05, 0.4))
def test_about_the_wanted_share_is_hidden(seed: int, share: float) -> None:
    lengths = np.full(64, 400)
    hidden = hide_spans(lengths, 400, share, np.random.default_rng(seed)).numpy()
    # Spans may overlap, so a little less than the share is hidden.
    assert 0.7 * share < hidden.mean() < 1.1 * share


@given(st.lists(st.integers(1, 48), min_size=1, max_size=20), st.integers(0, 99), st.floats(0, 1))
def test_neither_the_language_nor_padding_is_hidden(sizes: list[int], seed: int, share: float) -> None:
    lengths = np.array(sizes)
    hidden = hide_spans(lengths, 48, share, np.random.default_rng(seed)).numpy()
    assert hidden.shape == (len(sizes), 48)
    assert not hidden[:, 0].any()
    assert not hidden[np.arange(48)[None, :] >= lengths[:, None]].any()


def test_what_is_hidden_comes_in_spans() -> None:
    hidden = hide_spans(np.full(200, 300), 300, 0.2, np.random.default_rng(0)).numpy()
    starts = (hidden[:, 1:] & ~hidden[:, :-1]).sum()
    assert 2.2 < hidden.sum() / starts < 3.2


def test_targets_are_standardised_by_column() -> None:
    values = np.random.default_rng(0).normal([3, -50], [2, 10], (500, 2)).astype(np.float32)
    values[::3, 0] = np.nan
    found = standardised(values)
    assert np.array_equal(np.isnan(found), np.isnan(values))
    np.testing.assert_allclose(np.nanmean(found, axis=0), 0, atol=0.02)
    np.testing.assert_allclose(np.nanstd(found, axis=0), 1, atol=0.02)
    assert found.dtype == np.float32


def test_odd_columns_are_no_trouble() -> None:
    values = np.zeros((50, 3), np.float32)
    values[:, 1] = np.nan
    values[0, 2] = 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = standardised(values)
    assert not found[:, 0].any()
    assert np.isnan(found[:, 1]).all()
    assert np.abs(found[:, 2]).max() == 5


def test_pretraining_learns_words_and_numbers(texts: Texts, tmp_path: Path) -> None:
    run(texts, tmp_path, replace(CONFIG, tokens=120_000, tokens_per_batch=512, checkpoint_minutes=99))
    lines = [json.loads(line) for line in (tmp_path / "pretrain.jsonl").read_text().splitlines()]
    assert lines[-1]["words"] < lines[0]["words"] - 0.2
    assert lines[-1]["counts"] < 0.75 * lines[0]["counts"]


def test_it_reads_the_given_number_of_tokens(texts: Texts, tmp_path: Path) -> None:
    encoder = fresh()
    read = pretrain(encoder, SIZES, texts, CONFIG, tmp_path, resume=False)
    assert CONFIG.tokens <= read < CONFIG.tokens + CONFIG.tokens_per_batch


def test_the_same_seed_gives_the_same_encoder(texts: Texts, tmp_path: Path) -> None:
    first, second = run(texts, tmp_path / "a"), run(texts, tmp_path / "b")
    other = run(texts, tmp_path / "c", replace(CONFIG, seed=1))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("steps", [1, 7, 13])
def test_a_stopped_run_goes_on_to_the_same_losses_and_weights(
    texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    backward = Pretrainer.backward
    losses: list[tuple[float, float]] = []
    left = [10**6]

    def watched(self: Pretrainer, batch: Indices) -> dict[str, float]:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        figures = backward(self, batch)
        losses.append((figures["words"], figures["counts"]))
        return figures

    monkeypatch.setattr(Pretrainer, "backward", watched)
    whole = run(texts, tmp_path / "whole")
    expected, losses = losses, []
    assert len(expected) > 2 * steps
    left[0] = steps
    with pytest.raises(KeyboardInterrupt):
        run(texts, tmp_path / "stopped")
    left[0] = 10**6
    resumed = run(texts, tmp_path / "stopped", resume=True)
    assert losses == expected
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_a_checkpoint_is_not_taken_up_unasked(texts: Texts, tmp_path: Path) -> None:
    first = run(texts, tmp_path)
    again = run(texts, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


def test_a_finished_run_reads_nothing_more(texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(texts, tmp_path)
    monkeypatch.setattr(Pretrainer, "backward", None)
    again = run(texts, tmp_path, resume=True)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("target", [np.nan, 0.5])
def test_a_batch_with_nothing_to_guess_does_no_harm(tmp_path: Path, target: float) -> None:
    short = Texts([np.array([2], np.int32), np.array([3, 5], np.int32)], np.full((2, 2), target, np.float32))
    encoder = run(short, tmp_path, replace(CONFIG, tokens=60, tokens_per_batch=16))
    assert all(bool(torch.isfinite(parameter).all()) for parameter in encoder.parameters())


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to pretrain on"):
        run(Texts([], np.zeros((0, 2), np.float32)), tmp_path)


def network() -> str:
    """The text of a convolution of 3 x 3 from 3 to 16 channels and what follows it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 16, 32, 32])],
        [helper.make_tensor("w", TensorProto.FLOAT, [16, 3, 3, 3], [0.5] * 432)],
    )
    return render(from_model(helper.make_model(graph)))


def targets(*entries: tuple[str, str]) -> list[dict[str, float]]:
    return [dict(zip(TARGETS, row.tolist(), strict=True)) for row in synthetic_targets(entries)]


def test_a_row_a_text_a_column_a_target() -> None:
    assert synthetic_targets([("x = 1", "python")] * 3).shape == (3, len(TARGETS))
    assert synthetic_targets([]).shape == (0, len(TARGETS))


@pytest.mark.parametrize("language", ["python", "triton", "pytorch", "go"])
def test_syntax_counts_come_first(language: str) -> None:
    [found] = synthetic_targets([("for x in y:\n\tf(x)", language)])
    assert found[: len(NAMES)].tolist() == structure("for x in y:\n\tf(x)", language).tolist()


@pytest.mark.parametrize("language", ["ttir", "onnx"])
def test_a_language_without_a_grammar_has_no_syntax_counts(language: str) -> None:
    [found] = synthetic_targets([("x", language)])
    assert np.isnan(found[: len(NAMES)]).all()


def test_bytecode_is_counted_in_nested_functions_too() -> None:
    flat, nested, other = targets(
        ("def f():\n\treturn 1", "python"),
        ("def f():\n\tdef g():\n\t\treturn x + 1\n\treturn g", "python"),
        ("x", "go"),
    )
    assert nested["bytecode"] > flat["bytecode"] > 0
    assert nested["opcodes"] > flat["opcodes"] > 0
    assert np.isnan(other["bytecode"])
    assert np.isnan(other["opcodes"])


@pytest.mark.parametrize("text", ["def (((", "x\0y", "return 1\n\t\tx", "(" * 5000, "x = " + "9" * 6000, "\ud800", ""])
def test_what_does_not_compile_has_no_bytecode_and_is_no_error(text: str) -> None:
    [found] = targets((text, "python"))
    assert np.isnan(found["bytecode"]) or found["bytecode"] >= 0
    assert np.isfinite(found["nodes"])


def test_no_text_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w').close()\nraise SystemExit\n"
    assert targets((text, "python"), (text, "triton"))[0]["bytecode"] > 0
    assert not mark.exists()


def test_a_network_is_identified_by_its_parameters_and_products() -> None:
    found, broken, function = targets((network(), "onnx"), ("no graph at all ·", "onnx"), ("x = 1", "python"))
    assert np.expm1(found["parameters"]) == pytest.approx(16 * 3 * 9, rel=1e-3)
    assert np.expm1(found["macs"]) == pytest.approx(32 * 32 * 16 * 3 * 9, rel=1e-3)
    for other in (broken, function):
        assert np.isnan(other["parameters"])
        assert np.isnan(other["macs"])


def held_out(corpus: Corpus) -> list[tuple[str, str]]:
    """The texts of rows outside the split train."""
    return [corpus.texts[text] for text in np.unique(corpus.rows.text[corpus.rows.split != "train"])]


def file_of(folder: Path, *texts: tuple[str, str]) -> Path:
    """A file of texts."""
    columns = {"text": [text for text, _ in texts], "language": [language for _, language in texts]}
    pq.write_table(pa.table(columns, schema=SCHEMA), folder / "texts.parquet")
    return folder / "texts.parquet"


def test_training_texts_and_files_are_read_but_none_that_is_held_out(tmp_path: Path, mixed_corpus: Corpus) -> None:
    new = ("def new(x):\n\treturn x", "python")
    found = pretraining_texts(mixed_corpus, [file_of(tmp_path, held_out(mixed_corpus)[0], new, new)])
    training = {mixed_corpus.texts[text] for text in mixed_corpus.rows.text[mixed_corpus.rows.split == "train"]}
    assert set(found) >= {new, *training} - set(held_out(mixed_corpus))
    assert not set(found) & set(held_out(mixed_corpus))
    called = mixed_corpus.rows.callees[mixed_corpus.rows.split != "train"]
    assert not set(found) & {mixed_corpus.texts[text] for text in called[called >= 0]}
    assert len(found) == len(set(found))


def test_a_held_out_function_is_recognised_under_other_names_and_layout(tmp_path: Path, mixed_corpus: Corpus) -> None:
    text = next(text for text, language in held_out(mixed_corpus) if language == "python")
    renamed = text.replace("items", "things"), "python"
    commented = text.replace("\n", "  # as written\n", 1), "python"
    assert len({text, renamed[0], commented[0]}) == 3
    found = pretraining_texts(mixed_corpus, [file_of(tmp_path, renamed, commented)])
    assert not {renamed, commented} & set(found)


def test_the_same_texts_are_found_by_several_processes(
    tmp_path: Path, mixed_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, held_out(mixed_corpus)[0], ("def new(x):\n\treturn x", "python"))
    expected = pretraining_texts(mixed_corpus, [path])
    monkeypatch.setattr("rlm_core.training.student.pretrain._CHUNK", 10)
    assert pretraining_texts(mixed_corpus, [path]) == expected
