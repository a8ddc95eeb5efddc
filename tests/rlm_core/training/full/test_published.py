"""Published RLMs: their probabilities are those of transformers; what is not one is refused in one line."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from rlm_core.errors import ModelError
from rlm_core.inference.card import read_model_card
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.loading import load
from rlm_core.training.full import published, store
from rlm_core.training.full.decoding import Quantiles, quantiles
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.sequences import Slot
from rlm_core.training.full.spaces import APPS
from rlm_core.types import AbstentionCode, CodeText, Query

from .published_checkpoints import reference, write_checkpoint

pytestmark = pytest.mark.extras
_LINES = ("def add(a, b):\n", "    return a + b\n", "for i in range(10):\n", "    total += i * i\n", "x = [1, 2, 3]\n")
# Fifty texts of 3 to some 400 tokens.
TEXTS = ["".join(_LINES[(index + line) % 5] for line in range(1 + index)) for index in range(50)]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A tiny checkpoint and the model of transformers that wrote it; numbers of one digit each."""
    folder, model = tmp_path_factory.mktemp("published"), reference()
    write_checkpoint(folder, model=model, digits=(1, 1))
    return folder, model


def _theirs(model: Any, ids: np.ndarray, rows: torch.Tensor) -> torch.Tensor:
    """Logits ``(rows, positions, vocabulary)`` of transformers for number tokens ``(rows, positions)`` about a text."""
    text = torch.from_numpy(ids)[None]
    start = torch.cat([rows.new_zeros(len(rows), 1), rows[:, :-1]], 1)
    with torch.no_grad():
        encoded = model.get_encoder()(input_ids=text, attention_mask=torch.ones_like(text))
        encoded.last_hidden_state = encoded.last_hidden_state.expand(len(rows), -1, -1)
        found: torch.Tensor = model(
            encoder_outputs=encoded,
            attention_mask=torch.ones_like(text).expand(len(rows), -1),
            decoder_input_ids=start,
            decoder_attention_mask=torch.ones_like(start),
        ).logits
    return found


def _ours(model: FullModel, text: str, rows: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.logits(model.remember(model.encode([text])), None, rows[None, :, None])[0, :, 0]


def test_logits_are_those_of_transformers(layout: tuple[Path, Any]) -> None:
    model = published.read(layout[0])
    rows = torch.tensor([model.config.numbers.encode(value) for value in (1.0, 7e5, 3e-9)])
    lengths = set()
    for text in TEXTS:
        ids = model.encoder.tokenize([text]).ids[0]
        lengths.add(len(ids))
        torch.testing.assert_close(_ours(model, text, rows), _theirs(layout[1], ids, rows), atol=1e-4, rtol=0)
    assert len(lengths) == 50


def test_several_texts_at_once_and_padding_change_nothing(layout: tuple[Path, Any]) -> None:
    model = published.read(layout[0])
    rows = torch.tensor([model.config.numbers.encode(42.0)])
    chosen = TEXTS[:6]
    memory = model.remember(model.encode(chosen))
    together = model.logits(memory, None, rows.expand(6, -1)[:, None, None])[:, 0, 0]
    for text, own in zip(chosen, together, strict=True):
        torch.testing.assert_close(own, _ours(model, text, rows)[0], atol=1e-4, rtol=0)


def _numbers(model: FullModel) -> torch.Tensor:
    """All numbers that the grammar allows, ``(numbers, positions)``."""
    masks = model.grammar.allowed[0]
    return torch.tensor(list(itertools.product(*(mask.nonzero()[:, 0].tolist() for mask in masks))))


def test_greedy_numbers_and_quantiles_are_those_of_transformers(layout: tuple[Path, Any]) -> None:
    """All 360 numbers are written out; none begins with a zero, and each is as probable as transformers says."""
    model = published.read(layout[0])
    rows = _numbers(model)
    assert len(rows) == 2 * 2 * 10 * 9
    values = np.array([model.config.numbers.decode(row.tolist()) for row in rows])
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    for text in TEXTS[::16]:
        logits = _theirs(layout[1], model.encoder.tokenize([text]).ids[0], rows).double()
        logits = logits.masked_fill(~model.grammar.masks(rows), -torch.inf)
        mass = logits.log_softmax(-1).gather(-1, rows[..., None]).sum((1, 2)).exp().numpy()
        assert mass.sum() == pytest.approx(1)
        order = np.argsort(values, kind="stable")
        total = np.cumsum(mass[order])
        found: Quantiles = quantiles(model, model.encode([text]), [[[Slot()]]], levels)[0][0]
        wanted = [values[order][np.searchsorted(total, level)] for level in levels]
        np.testing.assert_allclose(found.values, wanted)
        assert found.error == 0
        ids = model.encoder.tokenize([text]).ids[0]
        assert _greedy(partial(_ours, model, text), model) == _greedy(partial(_theirs, layout[1], ids), model)


def _greedy(logits: Callable[[torch.Tensor], torch.Tensor], model: FullModel) -> list[int]:
    """The most probable token at each position, one after another."""
    row = torch.zeros(1, model.config.numbers.positions, dtype=torch.int64)
    for position in range(row.shape[1]):
        allowed = model.grammar.allowed[0, position]
        row[0, position] = logits(row)[0, position].masked_fill(~allowed, -torch.inf).argmax()
    return row[0].tolist()


def test_a_checkpoint_of_the_published_size_is_read_without_a_change(tmp_path: Path) -> None:
    model = reference("full")
    write_checkpoint(tmp_path, "full", model)
    assert (tmp_path / "model.safetensors").stat().st_size == 725_864_700  # what the hub says of the published one
    own = published.read(tmp_path)
    assert sum(weight.numel() for weight in own.parameters()) == 181_458_944
    assert own.config.numbers.positions == 9
    rows = torch.tensor([own.config.numbers.encode(5970.0)])
    for text in TEXTS[::24]:
        ids = own.encoder.tokenize([text]).ids[0]
        torch.testing.assert_close(_ours(own, text, rows), _theirs(model, ids, rows), atol=1e-4, rtol=0)
    shutil.rmtree(tmp_path)


def test_an_installed_model_answers_for_its_spaces_and_abstains_otherwise(
    layout: tuple[Path, Any], tmp_path: Path
) -> None:
    origin = ModelOrigin("owner/model", "0c92", "MIT")
    published.install(layout[0], tmp_path / "model", "tiny", origin)
    card = read_model_card(tmp_path / "model")
    assert card.trained["origin"] == {"source": "owner/model", "revision": "0c92", "license": "MIT"}
    assert [space["name"] for space in card.trained[store.SPACES]][:3] == ["APPS", "CDSS", "KBSS"]
    predictor = load(tmp_path / "model")
    program = CodeText(TEXTS[3], "python", "program")
    kernel = CodeText("@triton.jit\ndef k(x): pass\n", "triton", "kernel")
    call = CodeText(TEXTS[1], "python", "call")
    network = CodeText("graph", "onnx", "network")
    space = {"space": "nasbench101"}
    answers = predictor.predict(
        [program, kernel, kernel, call, network, network],
        [
            [Query("memory"), Query("latency")],
            [Query("latency")],
            [Query("latency", "nvidia-h100-sxm")],
            [Query("latency")],
            [Query("accuracy")],
            [Query("accuracy", None, space)],
        ],
    )
    memory, latency = answers[0]
    own = published.read(layout[0])
    raw = quantiles(own, own.encode([APPS.reading(TEXTS[3])]), [[[Slot()]]], [0.5], resolution=0.01)[0][0].smooth[0]
    assert memory.median == pytest.approx(max(raw, 0))
    assert memory.bands[0].source.uncalibrated
    assert np.isnan(memory.above(1.0))  # a probability that nothing was checked on is not said
    assert answers[1][0].device == "nvidia-rtx-a6000"
    assert answers[1][0].median is not None
    codes = [row.abstained.code if row.abstained else None for row in (latency, *(line[0] for line in answers[1:]))]
    untrained, device = AbstentionCode.TASK_NOT_TRAINED, AbstentionCode.DEVICE_NOT_TRAINED
    assert codes == [untrained, None, device, untrained, untrained, None]
    assert 0 <= (answers[5][0].median or 0) <= 1
    assert predictor.default_queries("kernel", "triton") == (Query("latency", "nvidia-rtx-a6000"),)


def test_number_tokens_may_have_another_order(layout: tuple[Path, Any], tmp_path: Path) -> None:
    """The vocabulary says which row is which token; none is assumed."""
    folder = tmp_path / "other"
    shutil.copytree(layout[0], folder)
    names = list(json.loads((folder / "ieee_vocab.json").read_text()))
    order = [0, *reversed(range(1, len(names)))]
    (folder / "ieee_vocab.json").write_text(json.dumps([names[index] for index in order]))
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    for name in ("model.model.decoder.embed_tokens.weight", "model.lm_head.out_proj.weight"):
        weights[name] = weights[name][order].contiguous()
    safetensors.torch.save_file(weights, folder / "model.safetensors")
    first, second = published.read(layout[0]), published.read(folder)
    rows = torch.tensor([first.config.numbers.encode(1e4)])
    torch.testing.assert_close(_ours(first, TEXTS[2], rows), _ours(second, TEXTS[2], rows))


def _config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _without(folder: Path, name: str) -> None:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    del weights[name]
    safetensors.torch.save_file(weights, folder / "model.safetensors")


def _with(folder: Path, name: str, weight: torch.Tensor) -> None:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    safetensors.torch.save_file({**weights, name: weight}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: _config(folder, model_type="bert"), "model type 'bert', not regresslm"),
        (lambda folder: _config(folder, use_regression_head=True), "has a regression head"),
        (lambda folder: _config(folder, backbone_config=None), "has no `backbone_config`"),
        (lambda folder: _config(folder, ieee_mantissa_digits=None), "settings of its numbers are incomplete"),
        (lambda folder: _config(folder, ieee_base=8), "names 13 tokens that are not the 11"),
        (lambda folder: (folder / "ieee_vocab.json").unlink(), r"ieee_vocab\.json: cannot be read"),
        (lambda folder: (folder / "ieee_vocab.json").write_text('{"a": 0}'), "that are not the 13"),
        (lambda folder: (folder / "encoder_tokenizer" / "tokenizer.json").unlink(), r"tokenizer\.json: cannot be read"),
        (lambda folder: (folder / "encoder_tokenizer" / "tokenizer.json").write_text("{}"), "not a tokenizer"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"damaged"), "cannot be read"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "model.bin"), "could run code"),
        (lambda folder: _without(folder, "model.model.encoder.norm.weight"), r"has no `encoder\.norm\.weight`"),
        (lambda folder: _without(folder, "model.lm_head.out_proj.weight"), r"has no `decoder\.logits\.weight`"),
        (
            lambda folder: _without(folder, "model.model.decoder.layers.1.self_attn.k_proj.weight"),
            "has no k_proj",
        ),
        (lambda folder: _with(folder, "model.model.pooler.weight", torch.ones(2)), "has no place in this layout"),
        (
            lambda folder: _with(folder, "model.model.encoder.norm.weight", torch.ones(2)),
            r"has the shape \(2,\), config\.json says \(32,\)",
        ),
        (
            lambda folder: _with(folder, "model.lm_head.out_proj.weight", torch.ones(3, 32)),
            "know 3 number tokens, its vocabulary 13",
        ),
    ],
)
def test_what_is_not_such_a_model_is_refused_in_one_line(
    layout: tuple[Path, Any], tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(layout[0], folder)
    damage(folder)
    with pytest.raises(ModelError, match=message) as caught:
        published.install(folder, tmp_path / "out", "damaged", ModelOrigin("x"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [None, "x", -1, 10**9, [], {}, 1e400])
def test_a_value_of_another_kind_in_the_configuration_gives_one_line(
    layout: tuple[Path, Any], tmp_path: Path, value: object
) -> None:
    """Each value of ``config.json`` in turn, at any depth: the model is read, or refused in one line."""
    folder = tmp_path / "damaged"
    shutil.copytree(layout[0], folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    parts = [config, config["backbone_config"], *(config["backbone_config"][part] for part in ("encoder", "decoder"))]
    refused: list[str] = []
    for part in parts:
        for name, before in list(part.items()):
            part[name] = value
            path.write_text(json.dumps(config))
            part[name] = before
            try:
                published.read(folder)
            except ModelError as error:
                refused.append(str(error))
    assert len(refused) > 10
    assert not any("\n" in message for message in refused)
