"""The model: shapes, the cache, sharing of the text, padding."""

from __future__ import annotations

import json

import pytest
import torch
from rlm_core.errors import ModelError
from rlm_core.training.full.decoder import FullConfig, regress_lm_config
from rlm_core.training.full.encoders.base import pad
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import PAD
from rlm_core.training.full.regress_lm import p10

from .tiny import ACCURACY, LATENCY, MEMORY, SMALL, TEXTS, tiny_model, tiny_regress_lm


def tokens_of(model: FullModel, *values: float) -> torch.Tensor:
    """One input, one branch: ``(1, 1, numbers, positions)``."""
    return torch.from_numpy(model.config.numbers.encode_many(values))[None, None]


@pytest.mark.parametrize("own", [True, False])
def test_reading_token_by_token_is_reading_all_at_once(own: bool) -> None:
    model = tiny_model() if own else tiny_regress_lm()
    memory = model.remember(model.encode(TEXTS[:1]))
    queries = model.query_tokens.batch([ACCURACY, LATENCY]).view(1, 1, 2) if model.query_tokens else None
    x = model.sequence(queries, tokens_of(model, 0.5, 3.0))
    whole, _ = model.decoder(x, memory)
    cache, parts = None, []
    for index in range(x.shape[2]):
        part, cache = model.decoder(x[:, :, index : index + 1], memory, cache)
        parts.append(part)
    assert torch.allclose(torch.cat(parts, 2), whole, atol=1e-5)


def test_training_scores_are_the_scores_of_decoding() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    queries = model.query_tokens.batch([ACCURACY, LATENCY] * 3).view(3, 1, 2) if model.query_tokens else None
    tokens = tokens_of(model, 0.5, 3.0).repeat(3, 1, 1, 1)
    ids, mask = pad(model.encoder.tokenize(TEXTS).ids, model.encoder.pad_id)
    trained = model(ids, mask, queries, tokens)
    assert trained.shape == (3, 1, 2, SMALL.positions)
    for row, memory in enumerate(memories):
        alone = model.log_probs(
            model.remember([memory]), None if queries is None else queries[row : row + 1], tokens[:1]
        )
        assert torch.allclose(trained[row], alone[0], atol=1e-5)


def test_branches_share_a_text_and_do_not_see_each_other() -> None:
    model = tiny_model()
    memory = model.remember(model.encode(TEXTS[:1]))
    assert model.query_tokens is not None
    queries = model.query_tokens.batch([LATENCY, MEMORY]).view(1, 2, 1)
    tokens = torch.cat([tokens_of(model, 0.5), tokens_of(model, -3.0)], 1)
    both = model.log_probs(memory, queries, tokens)
    for branch in range(2):
        own = slice(branch, branch + 1)
        assert torch.allclose(both[:, own], model.log_probs(memory, queries[:, own], tokens[:, own]), atol=1e-5)


def test_a_missing_number_scores_nothing_and_gets_no_gradient() -> None:
    model = tiny_model()
    assert model.query_tokens is not None
    queries = model.query_tokens.batch([ACCURACY, LATENCY]).view(1, 1, 2)
    tokens = tokens_of(model, 0.5, 3.0)
    tokens[:, :, 1] = PAD
    scores = model.log_probs(model.remember(model.encode(TEXTS[:1])), queries, tokens)
    assert (scores[:, :, 1] == 0).all()
    (-scores.sum()).backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


def test_a_later_number_hears_of_an_earlier_one() -> None:
    model = tiny_model()
    assert model.query_tokens is not None
    memory = model.remember(model.encode(TEXTS[:1]))
    queries = model.query_tokens.batch([ACCURACY, LATENCY]).view(1, 1, 2)
    low, high = (model.log_probs(memory, queries, tokens_of(model, known, 3.0)) for known in (0.1, 5.0))
    assert not torch.allclose(low[:, :, 1], high[:, :, 1], atol=1e-3)


def test_a_frozen_memory_does_not_depend_on_its_batch() -> None:
    model = tiny_model()
    alone = [model.encode([text])[0].vectors for text in TEXTS]
    for vectors, memory in zip(alone, model.encode(TEXTS), strict=True):
        assert torch.equal(vectors, memory.vectors)


def test_long_texts_are_cropped_with_a_count() -> None:
    model = tiny_model()
    (memory,) = model.encode(["x = 1\n" * 500])
    assert len(memory.vectors) == 256
    assert memory.cropped > 0


def test_settings_survive_json() -> None:
    for config in (FullConfig(SMALL, languages=("python",)), regress_lm_config(p10(), 64, 3, 2)):
        assert FullConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ModelError, match="even multiple of 3 heads"):
        FullConfig(width=16, heads=3)
    with pytest.raises(ModelError, match="incomplete or wrong"):
        FullConfig.from_json({"width": 16})
    with pytest.raises(ModelError, match="encoder is 16 wide"):
        FullModel(FullConfig(), tiny_model().encoder)
