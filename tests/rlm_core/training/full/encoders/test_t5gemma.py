"""T5Gemma and T5Gemma 2 against transformers itself, on tiny checkpoints that transformers wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from rlm_core.errors import ModelError
from rlm_core.training.full.encoders.base import encode, load_encoder, pad
from rlm_core.training.full.encoders.pretrained import T5GemmaSettings, check_signal
from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

from . import checkpoints as tiny

FAMILIES: dict[str, Callable[[], Any]] = {"first": tiny.first, "second": tiny.second}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: tiny.write(make(), tmp_path_factory.mktemp(name)) for name, make in FAMILIES.items()}


@pytest.fixture(params=FAMILIES)
def base(request: pytest.FixtureRequest, written: dict[str, Path]) -> Path:
    return written[request.param]


def load(base: Path, mode: str = "frozen", **changes: Any) -> T5GemmaEncoder:
    return T5GemmaEncoder(T5GemmaSettings(str(base), **{"mode": mode, "max_tokens": 64, **changes}))


def vectors(encoder: T5GemmaEncoder) -> list[torch.Tensor]:
    with torch.no_grad():
        return encode(encoder.eval(), encoder.tokenize(tiny.CODE).ids)


def train(encoder: T5GemmaEncoder, steps: int = 3) -> None:
    encoder.train()
    ids, mask = pad(encoder.tokenize(tiny.CODE).ids, encoder.pad_id)
    optimizer = torch.optim.SGD([weight for weight in encoder.parameters() if weight.requires_grad], 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        encoder(ids, mask)[mask].square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("name", FAMILIES)
def test_vectors_equal_those_of_the_whole_model(name: str, written: dict[str, Path]) -> None:
    encoder, whole = load(written[name]), FAMILIES[name]()
    ids, mask = pad(encoder.tokenize(tiny.CODE).ids, encoder.pad_id)
    with torch.no_grad():
        expected = whole.get_encoder()(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert encoder.width == expected.shape[-1]
    torch.testing.assert_close(encoder(ids, mask)[mask], expected[mask], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_of_a_checkpoint_in_bfloat16_only_the_weights_are_rounded(name: str, tmp_path: Path) -> None:
    stored, whole = FAMILIES[name]().to(torch.bfloat16), FAMILIES[name]()
    part = stored.config.encoder if name == "first" else stored.config.encoder.text_config
    part.dtype = torch.bfloat16
    encoder = load(tiny.write(stored, tmp_path))
    ids, mask = pad(encoder.tokenize(tiny.CODE).ids, encoder.pad_id)
    with torch.no_grad():
        for weight in whole.parameters():
            weight.copy_(weight.to(torch.bfloat16))
        expected = whole.get_encoder()(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(encoder(ids, mask)[mask], expected[mask], rtol=0, atol=1e-5)


def test_only_the_text_encoder_is_loaded(base: Path) -> None:
    names = {name for name, _ in load(base).named_parameters()}
    assert not [name for name in names if "vision" in name or "decoder" in name]


def test_a_text_has_the_same_vectors_alone_in_a_batch_and_padded(base: Path) -> None:
    encoder = load(base)
    ids = encoder.tokenize(tiny.CODE).ids
    for row, shared in zip(ids, vectors(encoder), strict=True):
        torch.testing.assert_close(encode(encoder, [row])[0], shared, rtol=0, atol=1e-5)


def test_long_texts_lose_their_middle_and_say_how_much(base: Path) -> None:
    encoder = load(base, max_tokens=16)
    tokens, whole = encoder.tokenize(["".join(tiny.CODE), "x", ""]), load(base, max_tokens=512)
    full = whole.tokenize(["".join(tiny.CODE)]).ids[0].tolist()
    assert tokens.cropped == [len(full) - 16, 0, 0]
    assert tokens.ids[0].tolist() == [*full[:12], *full[-4:]]
    assert (full[0], full[-1]) == (2, 1)
    assert all(len(row) for row in tokens.ids)
    assert encoder.tokenize([]).ids == []


def test_a_frozen_encoder_is_saved_as_the_name_of_its_base(base: Path, tmp_path: Path) -> None:
    encoder = load(base)
    encoder.train()
    assert not encoder.trained
    assert not any(module.training for module in encoder.modules())
    ids, mask = pad(encoder.tokenize(tiny.CODE).ids, encoder.pad_id)
    assert not encoder(ids, mask).requires_grad
    encoder.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder.json"]
    again = load_encoder(tmp_path)
    assert isinstance(again, T5GemmaEncoder)
    assert all(torch.equal(a, b) for a, b in zip(vectors(encoder), vectors(again), strict=True))


def test_adapters_start_without_effect_and_only_they_are_trained_and_saved(base: Path, tmp_path: Path) -> None:
    encoder, before = load(base, "lora"), vectors(load(base))
    assert all(torch.equal(a, b) for a, b in zip(vectors(encoder), before, strict=True))
    kept = {name: weight.clone() for name, weight in encoder.named_parameters() if name not in encoder.trained}
    assert all("lora_" in name for name in encoder.trained)
    assert len(encoder.trained) == 2 * 7 * 2  # layers, matrices, A and B
    train(encoder)
    after = dict(encoder.named_parameters())
    assert all(torch.equal(weight, after[name]) for name, weight in kept.items())
    assert not torch.allclose(vectors(encoder)[0], before[0], atol=1e-4)
    encoder.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoder.json", "encoder.safetensors"]
    assert safetensors.torch.load_file(tmp_path / "encoder.safetensors").keys() == encoder.trained
    again = load_encoder(tmp_path)
    assert isinstance(again, T5GemmaEncoder)
    assert all(torch.equal(a, b) for a, b in zip(vectors(encoder), vectors(again), strict=True))


def test_a_fully_trained_encoder_no_longer_needs_its_base(tmp_path: Path, base: Path) -> None:
    encoder = load(base, "full")
    assert encoder.trained == {name for name, _ in encoder.named_parameters()}
    train(encoder)
    encoder.save(tmp_path)
    settings = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"base": "/nowhere/at/all"}))
    again = load_encoder(tmp_path)
    assert isinstance(again, T5GemmaEncoder)
    assert all(torch.equal(a, b) for a, b in zip(vectors(encoder), vectors(again), strict=True))
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.parametrize("mode", ["lora", "full"])
def test_recomputing_changes_memory_but_no_gradient(base: Path, mode: str) -> None:
    encoder = load(base, mode, dropout=0.0).train()
    ids, mask = pad(encoder.tokenize(tiny.CODE).ids, encoder.pad_id)

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
    encoder.recompute(False)
    assert len(kept) == len(again) == len(encoder.trained)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(kept, again, strict=True))


def test_bfloat16_keeps_positions_exact_and_vectors_close(base: Path) -> None:
    exact, rough = load(base), load(base, precision="bfloat16")
    assert {weight.dtype for weight in rough.parameters()} == {torch.bfloat16}
    assert all(torch.equal(a, b) for a, b in zip(exact.buffers(), rough.buffers(), strict=True))
    assert exact.settings.fingerprint == rough.settings.fingerprint
    for a, b in zip(vectors(exact), vectors(rough), strict=True):
        assert b.dtype == torch.float32
        assert 0 < (a - b).norm() / a.norm() < 0.03


def test_weights_in_several_files_are_put_together(tmp_path: Path, written: dict[str, Path]) -> None:
    tiny.write_tokenizer(tmp_path)
    tiny.first().save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert all(torch.equal(a, b) for a, b in zip(vectors(load(tmp_path)), vectors(load(written["first"])), strict=True))
    next(tmp_path.glob("model-00001*")).unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path)


def test_the_layout_of_either_release_is_read(tmp_path: Path, written: dict[str, Path]) -> None:
    """Hub files say ``model.encoder.layers``; modules of newer releases say ``encoder.text_model.layers``."""
    folder = _copy(written["second"], tmp_path)
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    assert "model.encoder.norm.weight" in weights
    moved = {name.replace("model.encoder.", "model.encoder.text_model."): weight for name, weight in weights.items()}
    safetensors.torch.save_file(moved, folder / "model.safetensors", {"format": "pt"})
    assert all(torch.equal(a, b) for a, b in zip(vectors(load(folder)), vectors(load(written["second"])), strict=True))


def test_a_base_that_changed_under_its_adapters_is_refused(tmp_path: Path) -> None:
    base = tiny.write(tiny.first(seed=0), tmp_path / "base")
    load(base, "lora").save(tmp_path / "saved")
    tiny.write(tiny.first(seed=1), base)
    with pytest.raises(ModelError, match="not the weights that the model was trained on"):
        load_encoder(tmp_path / "saved")


def test_an_encoder_that_lost_its_signal_is_refused(tmp_path: Path, written: dict[str, Path]) -> None:
    """What a loader does that hands out uninitialised memory, and what a checkpoint does that lost its embedding."""
    encoder = load(written["second"])
    check_signal(encoder, "here")
    scale = encoder.module.get_buffer("embed_tokens.embed_scale")
    for lost in (0.0, float("nan")):
        scale.fill_(lost)
        with pytest.raises(ModelError, match="embed_scale` was not initialised; use a release"):
            check_signal(encoder, "here")
    folder = _copy(written["first"], tmp_path)
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    for value in (0.0, float("nan")):
        weights["model.encoder.embed_tokens.weight"].fill_(value)
        safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ModelError, match="encodings do not depend on the text"):
            load(folder)


def test_weights_without_a_place_are_refused(tmp_path: Path, written: dict[str, Path]) -> None:
    folder = _copy(written["first"], tmp_path)
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    renamed = {name.replace("encoder.layers.1", "encoder.blocks.1"): weight for name, weight in weights.items()}
    safetensors.torch.save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"11 weights are missing \(`encoder\.layers\.1\.\S+`\) in the encoder of"):
        load(folder)
    extra = weights | {"model.encoder.layers.0.self_attn.gate.weight": torch.ones(2)}
    safetensors.torch.save_file(extra, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"self_attn\.gate\.weight` has no place"):
        load(folder)
    other = weights | {"model.encoder.norm.weight": torch.ones(2)}
    safetensors.torch.save_file(other, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"norm\.weight` has the shape \(2,\), config\.json says \(32,\)"):
        load(folder)


def test_settings_without_meaning_are_one_clear_line(written: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="mode is 'half'"):
        load(written["first"], "half")
    with pytest.raises(ModelError, match="precision is 'int4'"):
        load(written["first"], precision="int4")
    with pytest.raises(ModelError, match="at least 1"):
        load(written["first"], max_tokens=0)
    with pytest.raises(ModelError, match="reads 512 tokens"):
        load(written["first"], max_tokens=1024)
    with pytest.raises(ModelError, match="set `attention` to auto"):
        load(written["first"], attention="sdpa")


def _copy(folder: Path, target: Path) -> Path:
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target
