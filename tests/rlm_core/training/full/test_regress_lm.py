"""Checkpoints of regress-lm, against values recorded with it (``tools/experiments/regress_lm_reference.py record``).

Models and values under ``data`` were made there with seeded random weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from rlm_core.errors import DataError, ModelError
from rlm_core.training.full import checkpoint_reader, store
from rlm_core.training.full.decoding import log_prob, quantiles
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.regress_lm import SPECIAL, convert, ieee, p10, special_tokens, t5gemma_encoder
from rlm_core.training.full.sequences import Slot

from .encoders import checkpoints as encoders_checkpoints

DATA = Path(__file__).parent / "data"
CASES: dict[str, Any] = json.loads((DATA / "regress_lm.json").read_text(encoding="utf-8"))
VANILLA = [name for name in CASES if name != "t5gemma"]
TEXT = "while queue:\n    node = queue.pop()\n    seen.add(node)\n" * 4


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read checkpoints in this process: a child each time would take minutes."""

    def read(path: Path, folder: Path, memory: int, seconds: float) -> None:
        safetensors.torch.save_file(checkpoint_reader._weights(path), folder / checkpoint_reader._WEIGHTS)

    monkeypatch.setattr(checkpoint_reader, "_run_child", read)


def checkpoint(name: str, folder: Path) -> Path:
    """The recorded weights as regress-lm's trainer saves them."""
    state = safetensors.torch.load_file(DATA / f"{name}.safetensors")
    torch.save({"model_state": state, "optimizer_state": {"lr": 0.1}, "global_step": 1}, folder / "model.pt")
    return folder / "model.pt"


def value_of(text: str) -> float | str:
    return text if text == "INVALID" else float(text)


def check(model: FullModel, name: str) -> None:
    """Every recorded log-probability."""
    for example in CASES[name]["examples"]:
        slots = [Slot(value=value_of(text)) for text in example["values"]]
        (found,) = log_prob(model, model.encode([example["text"]]), [[slots]], constrained=False)[0]
        assert float(found.sum()) == pytest.approx(example["log_prob"], abs=1e-4)


@pytest.mark.parametrize("name", VANILLA)
def test_log_probabilities_are_those_of_regress_lm(name: str, tmp_path: Path) -> None:
    numbers = NumberFormat.from_json(CASES[name]["numbers"])
    model = convert(checkpoint(name, tmp_path), numbers, DATA / "tokenizer.model")
    check(model, name)
    store.save(model, tmp_path / "ours", name)
    check(store.load(tmp_path / "ours")[0], name)


def test_log_probabilities_with_a_t5gemma_encoder_are_those_of_regress_lm(tmp_path: Path) -> None:
    # Another base than the recorded one: all its weights come from the checkpoint.
    base = encoders_checkpoints.write(encoders_checkpoints.first(seed=3), tmp_path / "base")
    model = convert(checkpoint("t5gemma", tmp_path), ieee(), encoder=t5gemma_encoder(str(base), 128))
    check(model, "t5gemma")


def with_encoder(encoder: Any, folder: Path, **changes: torch.Tensor) -> Path:
    """The recorded checkpoint with the weights of another encoder, as regress-lm nests them."""
    state = safetensors.torch.load_file(DATA / "t5gemma.safetensors")
    state = {name: weight for name, weight in state.items() if not name.startswith("encoder_decoder.encoder.")}
    weights = {**encoder.state_dict(), **changes}
    state |= {f"encoder_decoder.encoder.encoder.{name}": weight for name, weight in weights.items()}
    torch.save({"model_state": state}, folder / "model.pt")
    return folder / "model.pt"


def vectors(encoder: Any, ids: Any) -> torch.Tensor:
    """The token vectors ``(tokens, width)`` of transformers."""
    text = torch.from_numpy(ids)[None]
    with torch.no_grad():
        found: torch.Tensor = encoder(input_ids=text, attention_mask=torch.ones_like(text)).last_hidden_state[0]
    return found


def test_a_t5gemma_encoder_runs_without_the_cap_of_its_attention(tmp_path: Path) -> None:
    """regress-lm chooses the fused attention of PyTorch, which never applied it."""
    capped = encoders_checkpoints.first(seed=3, attn_logit_softcapping=0.5)
    theirs = encoders_checkpoints.first(seed=3, attn_logit_softcapping=None)
    for model in (capped, theirs):
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith(("q_proj.weight", "k_proj.weight")):
                    weight.mul_(20)
    base = encoders_checkpoints.write(capped, tmp_path / "base")
    path = with_encoder(theirs.get_encoder(), tmp_path)
    model = convert(path, ieee(), encoder=t5gemma_encoder(str(base), 128))
    store.save(model, tmp_path / "ours", "t5gemma")
    ids = model.encoder.tokenize([TEXT]).ids[0]
    expected = vectors(theirs.get_encoder(), ids)
    assert (expected - vectors(capped.get_encoder(), ids)).abs().max() > 0.01
    for converted in (model, store.load(tmp_path / "ours")[0]):
        torch.testing.assert_close(converted.encode([TEXT])[0].vectors, expected, rtol=0, atol=1e-5)


def test_a_t5gemma_2_encoder_may_have_more_ids_and_parts_for_images(tmp_path: Path) -> None:
    theirs = encoders_checkpoints.second(seed=1)
    base = encoders_checkpoints.write(encoders_checkpoints.second(seed=2), tmp_path / "base")
    encoder, name = theirs.get_encoder(), "text_model.embed_tokens.weight"
    assert [part for part in encoder.state_dict() if part.startswith("vision_tower.") and ".layers.0." in part]
    embedding = torch.cat([encoder.state_dict()[name], torch.ones(3, 32)])
    model = convert(
        with_encoder(encoder, tmp_path, **{name: embedding}), ieee(), encoder=t5gemma_encoder(str(base), 128)
    )
    store.save(model, tmp_path / "ours", "t5gemma")
    ids = model.encoder.tokenize([TEXT]).ids[0]
    for converted in (model, store.load(tmp_path / "ours")[0]):
        torch.testing.assert_close(converted.encode([TEXT])[0].vectors, vectors(encoder, ids), rtol=0, atol=1e-5)
    few = with_encoder(encoder, tmp_path, **{name: embedding[:100]})
    with pytest.raises(
        ModelError, match=r"model\.pt: the embedding has 100 rows, the tokenizer .* ids; give the T5Gemma"
    ):
        convert(few, ieee(), encoder=t5gemma_encoder(str(base), 128))


def test_long_texts_of_a_t5gemma_encoder_keep_their_start(tmp_path: Path) -> None:
    base = encoders_checkpoints.write(encoders_checkpoints.first(seed=3), tmp_path / "base")
    whole, short = t5gemma_encoder(str(base), 128).tokenize([TEXT]), t5gemma_encoder(str(base), 16).tokenize([TEXT])
    assert list(short.ids[0]) == list(whole.ids[0][:16])
    assert short.cropped == [len(whole.ids[0]) - 16]


def test_special_tokens_are_chosen_by_name() -> None:
    assert special_tokens(["ninf", "NAN"]) == (SPECIAL[0], SPECIAL[2])
    with pytest.raises(DataError, match="--special ZERO: unknown; give NAN, INF, NINF, INVALID"):
        special_tokens(["ZERO"])


@pytest.mark.parametrize("name", CASES)
def test_number_tokens_are_those_of_regress_lm(name: str) -> None:
    numbers = NumberFormat.from_json(CASES[name]["numbers"])
    for text, tokens in CASES[name]["tokens"].items():
        assert list(numbers.encode(value_of(text))) == tokens


def test_objectives_and_quantiles_work_on_a_converted_model(tmp_path: Path) -> None:
    numbers = NumberFormat.from_json(CASES["p10_special"]["numbers"])
    model = convert(checkpoint("p10_special", tmp_path), numbers, DATA / "tokenizer.model")
    assert model.config.max_numbers == 3
    (answer,) = quantiles(model, model.encode(["x = 1"]), [[[Slot(value=0.5), Slot()]]], (0.1, 0.5, 0.9))[0]
    assert answer.values[0] <= answer.values[1] <= answer.values[2]


def test_long_texts_keep_their_start(tmp_path: Path) -> None:
    model = convert(checkpoint("ieee", tmp_path), ieee(), DATA / "tokenizer.model", max_tokens=8)
    whole = convert(tmp_path / "model.pt", ieee(), DATA / "tokenizer.model")
    text = "def add(a, b):\n    return a + b\n"
    (short,), (long,) = model.encoder.tokenize([text]).ids, whole.encoder.tokenize([text]).ids
    assert list(short) == list(long[:8])
    assert model.encode([text])[0].cropped == len(long) - 8


def test_bfloat16_stays_near(tmp_path: Path) -> None:
    path = checkpoint("ieee", tmp_path)
    exact = convert(path, ieee(), DATA / "tokenizer.model")
    fast = convert(path, ieee(), DATA / "tokenizer.model", precision="bfloat16")
    slots = [[[Slot(value=12.5)]]]
    one, other = (float(log_prob(model, model.encode(["hello"]), slots)[0][0][0]) for model in (exact, fast))
    assert one != other
    assert one == pytest.approx(other, abs=0.1)


def test_settings_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    path = checkpoint("ieee", tmp_path)
    with pytest.raises(ModelError, match=r"model\.pt: has 13 number tokens, the number format 34; give the order"):
        convert(path, p10(), DATA / "tokenizer.model")
    with pytest.raises(ModelError, match="does not hold its tokenizer"):
        convert(path, ieee())
    with pytest.raises(ModelError, match="cannot be read"):
        convert(path, ieee(), tmp_path / "none.model")
    (tmp_path / "bad.model").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="not a SentencePiece model"):
        convert(path, ieee(), tmp_path / "bad.model")
    with pytest.raises(ModelError, match="not an even multiple"):
        convert(path, ieee(), DATA / "tokenizer.model", heads=5)
