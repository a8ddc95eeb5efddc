"""The from-scratch encoder: tokens, vectors, training, saving."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import rlm_core
import torch
from rlm_core.errors import ModelError
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.full.encoders.base import encode, load_encoder, marked, pad
from rlm_core.training.full.encoders.scratch import ScratchConfig, ScratchEncoder
from rlm_core.training.student.network import Encoder, StudentConfig

SIZES = ScratchConfig(width=32, layers=2, heads=4, hidden=48, max_tokens=40)
TEXTS = ["x = 1", "for i in range(10):\n\ttotal += i\n", "", "return [value * value for value in values]"]


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    return Tokenizer.load(Path(rlm_core.__file__).parent / "builtin" / "tokenizer.model")


@pytest.fixture
def encoder(words: Tokenizer) -> ScratchEncoder:
    torch.manual_seed(0)
    return ScratchEncoder(SIZES, words).eval()


def test_a_language_is_one_token_as_the_tokenizer_has_it(encoder: ScratchEncoder, words: Tokenizer) -> None:
    tokens = encoder.tokenize([marked("x = 1", "java"), "x = 1"])
    assert tokens.ids[0].tolist() == words.encode("x = 1", "java").tolist()
    assert tokens.ids[1].tolist() == tokens.ids[0][1:].tolist()


def test_long_texts_lose_their_middle_and_say_how_much(encoder: ScratchEncoder, words: Tokenizer) -> None:
    text = "\n".join(f"first_{i} = {i}" for i in range(50))
    whole = words.encode(text, "python")[1:]
    tokens = encoder.tokenize([text, "x = 1"])
    assert tokens.cropped == [len(whole) - 40, 0]
    assert tokens.lengths.tolist() == [40, len(tokens.ids[1])]
    assert tokens.ids[0].tolist() == [*whole[:30], *whole[-10:]]


def test_an_empty_text_has_a_token(encoder: ScratchEncoder) -> None:
    assert len(encoder.tokenize([""]).ids[0]) >= 1
    assert encoder.tokenize([]).ids == []


def test_a_text_has_the_same_vectors_alone_in_a_batch_and_padded(encoder: ScratchEncoder) -> None:
    ids = encoder.tokenize(TEXTS).ids
    together = encode(encoder, ids)
    for alone, shared, row in zip((encode(encoder, [row])[0] for row in ids), together, ids, strict=True):
        assert shared.shape == (len(row), encoder.width)
        torch.testing.assert_close(alone, shared, rtol=0, atol=1e-5)


def test_it_computes_what_the_students_encoder_computes(encoder: ScratchEncoder, words: Tokenizer) -> None:
    student = Encoder(StudentConfig(vocabulary=words.size, width=32, layers=2, heads=4, hidden=48))
    student.load_state_dict(encoder.state_dict(), strict=False)
    ids, mask = pad(encoder.tokenize(TEXTS).ids, encoder.pad_id)
    torch.testing.assert_close(encoder(ids, mask)[mask], student.states(ids, mask)[mask], rtol=0, atol=2e-5)


def test_a_saved_encoder_comes_back_the_same(encoder: ScratchEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path)
    again = load_encoder(tmp_path)
    assert isinstance(again, ScratchEncoder)
    assert again.config == SIZES
    assert not again.training
    ids = encoder.tokenize(TEXTS).ids
    assert [row.tolist() for row in again.tokenize(TEXTS).ids] == [row.tolist() for row in ids]
    assert all(torch.equal(a, b) for a, b in zip(encode(encoder, ids), encode(again, ids), strict=True))


def test_recomputing_changes_memory_but_no_gradient(encoder: ScratchEncoder) -> None:
    ids, mask = pad(encoder.tokenize(TEXTS).ids, encoder.pad_id)
    encoder.train()

    def gradients() -> tuple[list[torch.Tensor], int]:
        held = 0

        def count(value: torch.Tensor) -> torch.Tensor:
            nonlocal held
            held += value.numel()
            return value

        encoder.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(count, lambda value: value):
            loss = encoder(ids, mask)[mask].square().sum()
        loss.backward()
        return [weight.grad.clone() for weight in encoder.parameters() if weight.grad is not None], held

    kept, all_held = gradients()
    encoder.recompute(True)
    again, held = gradients()
    assert held < all_held / 2
    assert len(kept) == len(again) == len(encoder.trained)
    assert all(torch.allclose(a, b) for a, b in zip(kept, again, strict=True))


def test_bfloat16_gives_nearly_the_same_vectors_in_float32(encoder: ScratchEncoder) -> None:
    ids, mask = pad(encoder.tokenize(TEXTS).ids, encoder.pad_id)
    exact = encoder(ids, mask)[mask]
    with torch.autocast("cpu", torch.bfloat16):
        rough = encoder(ids, mask)[mask]
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).norm() / exact.norm() < 0.03


def test_sizes_that_do_not_fit_are_one_clear_line() -> None:
    with pytest.raises(ModelError, match="width 30 with 4 heads"):
        ScratchConfig(width=30, heads=4)
    with pytest.raises(ModelError, match="at least 1"):
        ScratchConfig(layers=0)


def test_a_missing_tokenizer_is_one_clear_line(encoder: ScratchEncoder, tmp_path: Path) -> None:
    encoder.save(tmp_path)
    (tmp_path / "tokenizer.model").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.model: cannot be read"):
        load_encoder(tmp_path)


def test_weights_that_are_missing_damaged_or_foreign_are_one_clear_line(
    encoder: ScratchEncoder, words: Tokenizer, tmp_path: Path
) -> None:
    encoder.save(tmp_path)
    path = tmp_path / "encoder.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"encoder\.safetensors: damaged"):
        load_encoder(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match=r"encoder\.safetensors: cannot be read"):
        load_encoder(tmp_path)
    path.write_bytes(whole)
    settings = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"hidden": 64}))
    with pytest.raises(ModelError, match="has the shape"):
        load_encoder(tmp_path)
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"layers": 3}))
    with pytest.raises(ModelError, match=r"`layers\.2\S*` is missing"):
        load_encoder(tmp_path)
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"depth": 3}))
    with pytest.raises(ModelError, match="depth"):
        load_encoder(tmp_path)


def test_a_few_steps_learn_to_distinguish_texts(encoder: ScratchEncoder) -> None:
    encoder.train()
    ids, mask = pad(encoder.tokenize(TEXTS).ids, encoder.pad_id)
    target = torch.tensor(np.array([1.0, -1.0, 2.0, 0.0], np.float32))
    head = torch.nn.Linear(encoder.width, 1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 3e-3)
    losses = []
    for _ in range(30):
        states = encoder(ids, mask) * mask[:, :, None]
        loss = (head(states.sum(1) / mask.sum(1, keepdim=True))[:, 0] - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 10
