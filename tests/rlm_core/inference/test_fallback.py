"""Two models as one: each answers what it was trained for."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.inference.fallback import FallbackPredictor
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.loading import load
from rlm_core.training.full import published
from rlm_core.types import CodeText, Query

from tests.rlm_core.training.full.published_checkpoints import write_checkpoint

pytestmark = pytest.mark.extras
FUNCTION = CodeText("def f(x):\n    return sorted(x)\n", "python", "call")
PROGRAM = CodeText("n = int(input())\nprint(n * n)\n", "python", "program")
KERNEL = CodeText("@triton.jit\ndef k(x):\n    pass\n", "triton", "kernel")


def test_a_published_model_answers_its_spaces_and_the_built_in_one_the_rest(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "layout")
    published.install(tmp_path / "layout", tmp_path / "model", "tiny", ModelOrigin("x"))
    first, second = load(tmp_path / "model"), load()
    both = FallbackPredictor(first, second)
    assert both.model_id == first.model_id
    queries = [both.default_queries(code.basis, code.language) for code in (FUNCTION, PROGRAM, KERNEL)]
    assert queries[0] == second.default_queries("call", "python")
    assert queries[1] == (second.default_queries("program", "python")[0], Query("memory"))
    assert queries[2] == (Query("latency", "nvidia-rtx-a6000"),)
    call, program, kernel = both.predict([FUNCTION, PROGRAM, KERNEL], queries)
    assert [answer.model for answer in call] == [second.model_id] * 2
    assert [answer.model for answer in program] == [second.model_id, first.model_id]
    assert [answer.model for answer in kernel] == [first.model_id]
    assert call == second.predict([FUNCTION], [queries[0]])[0]
    assert all(answer.abstained is None for line in (call, program, kernel) for answer in line)
    assert program[1].uncalibrated
    assert not program[0].uncalibrated
    share = both.percentile(call[0], "python")
    assert share is not None
    assert share == second.percentile(call[0], "python")
    assert both.percentile(program[1], "python") is None
    [[ratio]] = both.compare([(FUNCTION, FUNCTION)], [[Query("latency")]]) or []
    assert ratio.ratio == 1
    assert set(first.devices("kernel")) < set(both.devices("kernel"))


def test_an_answer_of_the_base_stays_its_answer() -> None:
    """A reason that is not about training, such as an empty text, does not lead to another model."""
    model = load()
    both = FallbackPredictor(model, model)
    empty = CodeText(" ", "python", "program")
    queries = [model.default_queries("program", "python")]
    assert both.predict([empty], queries) == model.predict([empty], queries)
    assert both.default_queries("program", "python") == queries[0]
