"""The engine: one model run a content, and a plain line when the model cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from rlm_core import CodeText, ModelError, Prediction, Query
from rlm_core.inference.cost_ratio import Change
from rlm_core.inference.predictor import Predictor
from rlm_core.types import Basis
from rlm_lsp.lsp.engine import Engine
from rlm_lsp.settings.model import Settings

pytestmark = [pytest.mark.timeout(30), pytest.mark.asyncio]

CODE = CodeText("def f(): pass", "python", "call")


class CountingPredictor:
    """Answers every query alike and keeps what it was asked."""

    model_id = "counting-1"

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction
        self.asked: list[str] = []
        self.queries: list[Query] = []

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (Query("latency"), Query("memory"))

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return ("nvidia-l40s",) if basis == "kernel" else ()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.asked += [text.text for text in texts]
        self.queries += [query for questions in queries for query in questions]
        return [[self.prediction] * len(questions) for questions in queries]


async def test_a_content_is_predicted_once(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    engine = Engine(Settings(), lambda model, threads: predictor)
    assert engine.cached(CODE) is None
    assert await engine.load() is None
    await engine.predict([CODE, CODE])
    await engine.predict([CODE])
    assert predictor.asked == [CODE.text]
    assert engine.cached(CODE) == (make_prediction(), make_prediction())
    engine.close()


async def test_only_the_metrics_of_the_settings_are_asked(make_prediction: Callable[..., Prediction]) -> None:
    engine = Engine(Settings(metrics=("memory",)), lambda model, threads: CountingPredictor(make_prediction()))
    await engine.load()
    await engine.predict([CODE])
    assert len(engine.cached(CODE) or ()) == 1
    engine.close()


async def test_the_devices_of_the_settings_are_asked_for_kernels(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    engine = Engine(Settings(metrics=("latency",), devices=("a100", "l40s")), lambda model, threads: predictor)
    await engine.load()
    await engine.predict([CODE, CodeText("def k(): pass", "triton", "kernel")])
    assert [query.device for query in predictor.queries] == [None, "a100", "l40s"]
    engine.close()


async def test_a_cancelled_step_does_not_reach_the_model(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    engine = Engine(Settings(), lambda model, threads: predictor)
    await engine.load()
    await engine.predict([CODE], lambda: True)
    assert predictor.asked == []
    engine.close()


async def test_a_model_that_cannot_be_loaded_is_one_line_and_no_predictions() -> None:
    def load(model: str, threads: int) -> Predictor:
        raise ModelError("models/x: weights.onnx is missing; export the model again")

    engine = Engine(Settings(), load)
    assert await engine.load() == "models/x: weights.onnx is missing; export the model again"
    await engine.wait_loaded()
    await engine.predict([CODE])
    assert not engine.ready
    assert engine.cached(CODE) is None
    engine.close()


async def test_work_on_the_model_waits_its_turn_and_may_be_cancelled(
    make_prediction: Callable[..., Prediction],
) -> None:
    predictor = CountingPredictor(make_prediction())
    engine = Engine(Settings(), lambda model, threads: predictor)
    assert await engine.run(lambda model: model.model_id) is None
    await engine.load()
    assert await engine.run(lambda model: model.model_id) == "counting-1"
    assert await engine.run(lambda model: model.model_id, lambda: True) is None
    engine.close()


async def test_answers_are_kept_by_their_questions_until_they_are_cleared(
    make_prediction: Callable[..., Prediction],
) -> None:
    predictor = CountingPredictor(make_prediction())
    engine = Engine(Settings(), lambda model, threads: predictor)
    await engine.load()
    asked = [(CODE, (Query("latency"),)), (CODE, (Query("memory"), Query("latency"))), (CODE, (Query("latency"),))]
    for _ in range(2):
        answers = await engine.run(lambda model: engine.answers(model, asked))
        assert [len(line) for line in answers or ()] == [1, 2, 1]
    assert len(predictor.queries) == 3
    assert engine.clear() == 2
    await engine.run(lambda model: engine.answers(model, asked[:1]))
    assert len(predictor.queries) == 4
    assert await engine.run(lambda model: engine.changes(model, [])) is None
    engine.close()


async def test_changes_are_asked_once_a_pair(make_prediction: Callable[..., Prediction]) -> None:
    class Comparing(CountingPredictor):
        def changes(
            self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
        ) -> list[list[Change]]:
            self.asked += [after.text for _, after in pairs]
            return [[Change("call", "latency", None, self.model_id, 2.0, ())] for _ in pairs]

    predictor = Comparing(make_prediction())
    engine = Engine(Settings(), lambda model, threads: predictor)
    await engine.load()
    other = CodeText("def g(): pass", "python", "call")
    asked = [(CODE, other, (Query("latency"),)), (other, CODE, (Query("latency"),))]
    for _ in range(2):
        told = await engine.run(lambda model: engine.changes(model, asked))
        assert [line[0].ratio for line in told or ()] == [2.0, 2.0]
    assert predictor.asked == [other.text, CODE.text]
    engine.close()
