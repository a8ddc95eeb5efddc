"""The prediction service: one model run per content, a bounded cache, and a plain line when no model can be loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import Callee, CodeText, ModelError, Prediction, Query
from rlm_core.inference.predictor import Predictor, WithoutComparison
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.types import Abstention, AbstentionCode, Basis, CostRatio, WorkFacts
from rlm_lsp.lsp.prediction_service import TRANSIENT_SECONDS, PredictionCache, PredictionService, content_key
from rlm_lsp.settings.model import Settings

pytestmark = pytest.mark.timeout(30)

CODE = CodeText("def f(): pass", "python", "call")
CALLER = CodeText("def f(): g()", "python", "call", (Callee("def g(): pass"),))
QUERIES = (Query("latency", "x86-64", {"runtime": "cpython"}),)


class CountingPredictor(WithoutComparison):
    """Answers every query alike and records the texts and queries."""

    model_id = "counting-1"

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction
        self.texts: list[str] = []
        self.queries: list[Query] = []

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return (Query("latency"), Query("memory"))

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("nvidia-l40s",) if basis == "kernel" else ()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.texts += [text.text for text in texts]
        self.queries += [query for questions in queries for query in questions]
        return [[self.prediction] * len(questions) for questions in queries]


@pytest.mark.asyncio
async def test_a_content_is_predicted_once(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    service = PredictionService(Settings(), lambda model, threads: predictor)
    assert service.known(CODE) is None
    assert await service.load() is None
    await service.predict([CODE, CODE])
    await service.predict([CODE])
    assert predictor.texts == [CODE.text]
    assert service.known(CODE) == (make_prediction(), make_prediction())
    service.close()


@pytest.mark.asyncio
async def test_only_the_configured_metrics_are_queried(make_prediction: Callable[..., Prediction]) -> None:
    service = PredictionService(
        Settings(metrics=("memory",)), lambda model, threads: CountingPredictor(make_prediction())
    )
    await service.load()
    await service.predict([CODE])
    assert len(service.known(CODE) or ()) == 1
    service.close()


@pytest.mark.asyncio
async def test_the_configured_devices_are_queried_for_kernels(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    service = PredictionService(
        Settings(metrics=("latency",), devices=("a100", "l40s")), lambda model, threads: predictor
    )
    await service.load()
    await service.predict([CODE, CodeText("def k(): pass", "triton", "kernel")])
    assert [query.device for query in predictor.queries] == [None, "a100", "l40s"]
    service.close()


@pytest.mark.asyncio
async def test_a_cancelled_step_does_not_reach_the_model(make_prediction: Callable[..., Prediction]) -> None:
    predictor = CountingPredictor(make_prediction())
    service = PredictionService(Settings(), lambda model, threads: predictor)
    await service.load()
    await service.predict([CODE], lambda: True)
    assert predictor.texts == []
    service.close()


@pytest.mark.asyncio
async def test_a_model_that_cannot_be_loaded_is_one_line_and_no_predictions() -> None:
    def load(model: str, threads: int) -> Predictor:
        raise ModelError("models/x: weights.onnx is missing; export the model again")

    service = PredictionService(Settings(), load)
    assert await service.load() == "models/x: weights.onnx is missing; export the model again"
    await service.wait_loaded()
    await service.predict([CODE])
    assert not service.ready
    assert service.known(CODE) is None
    service.close()


@pytest.mark.asyncio
async def test_work_on_the_model_waits_its_turn_and_may_be_cancelled(
    make_prediction: Callable[..., Prediction],
) -> None:
    predictor = CountingPredictor(make_prediction())
    service = PredictionService(Settings(), lambda model, threads: predictor)
    assert await service.run(lambda model: model.model_id) is None
    await service.load()
    assert await service.run(lambda model: model.model_id) == "counting-1"
    assert await service.run(lambda model: model.model_id, lambda: True) is None
    service.close()


@pytest.mark.asyncio
async def test_answers_are_kept_by_their_questions_until_they_are_cleared(
    make_prediction: Callable[..., Prediction],
) -> None:
    predictor = CountingPredictor(make_prediction())
    service = PredictionService(Settings(), lambda model, threads: predictor)
    await service.load()
    units = [(CODE, (Query("latency"),)), (CODE, (Query("memory"), Query("latency"))), (CODE, (Query("latency"),))]
    for _ in range(2):
        answers = await service.run(lambda model: service.answer(model, units))
        assert [len(line) for line in answers or ()] == [1, 2, 1]
    assert len(predictor.queries) == 3
    assert service.clear() == 2
    await service.run(lambda model: service.answer(model, units[:1]))
    assert len(predictor.queries) == 4
    assert await service.run(lambda model: service.compare(model, [])) is None
    service.close()


@pytest.mark.asyncio
async def test_changes_are_queried_once_per_pair(make_prediction: Callable[..., Prediction]) -> None:
    class Comparing(CountingPredictor):
        def compare(
            self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
        ) -> list[list[CostRatio]]:
            self.texts += [after.text for _, after in pairs]
            return [[CostRatio("call", "latency", None, self.model_id, 2.0, ())] for _ in pairs]

    predictor = Comparing(make_prediction())
    service = PredictionService(Settings(), lambda model, threads: predictor)
    await service.load()
    other = CodeText("def g(): pass", "python", "call")
    pairs = [(CODE, other, (Query("latency"),)), (other, CODE, (Query("latency"),))]
    for _ in range(2):
        ratios = await service.run(lambda model: service.compare(model, pairs))
        assert [line[0].ratio for line in ratios or ()] == [2.0, 2.0]
    assert predictor.texts == [other.text, CODE.text]
    service.close()


KERNEL = CodeText("def k(): pass", "triton", "kernel", (), ((("M", "64"), ("N", "1")), (("M", "128"), ("N", "1"))))
CALL = CodeText("def f(): pass", "python", "call", (), ((("M", "64"),),))


class Echo(WithoutComparison):
    """Answers each query with a prediction that says what it was."""

    def __init__(self, make: Callable[..., Prediction], model_id: str = "echo-1") -> None:
        self._make, self.model_id = make, model_id

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        device = "own" if basis == "kernel" else "x86-64"
        return tuple(Query(metric, device, {"mode": "forward"}) for metric in ("latency", "memory"))

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("own",)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [
            [self._make(metric=q.metric, device=q.device, workload=q.workload, model=self.model_id) for q in line]
            for line in queries
        ]


@pytest.mark.asyncio
async def test_each_folder_sees_what_it_wants_of_all_that_is_known(make_prediction: Callable[..., Prediction]) -> None:
    service = PredictionService(Settings(), lambda model, threads: Echo(make_prediction))
    service.select(QuerySelection(("latency", "memory"), (None, "a100")))
    assert service.known(KERNEL, QuerySelection(("latency",))) is None
    await service.load()
    await service.predict([KERNEL])
    assert len(service.known(KERNEL) or ()) == 8
    own = service.known(KERNEL, QuerySelection(("latency",))) or ()
    assert [(one.metric, one.device, one.workload["M"]) for one in own] == [
        ("latency", "own", "64"),
        ("latency", "own", "128"),
    ]
    assert {one.device for one in service.known(KERNEL, QuerySelection(None, ("a100",))) or ()} == {"a100"}
    service.close()


@pytest.mark.asyncio
async def test_a_model_is_loaded_again_and_a_bad_one_leaves_the_current_one(
    make_prediction: Callable[..., Prediction],
) -> None:
    loaded: list[tuple[str, int, str | None]] = []

    def load(model: str, threads: int, token_file: str | None = None) -> Predictor:
        loaded.append((model, threads, token_file))
        if model == "bad":
            raise ModelError("bad: missing")
        return Echo(make_prediction, model)

    service = PredictionService(Settings(model="one"), load)
    assert await service.load() is None
    await service.predict([CALL])
    assert await service.reload(Settings(model="bad")) == "bad: missing"
    assert service.ready
    assert (service.known(CALL) or ())[0].model == "one"
    assert await service.reload(Settings(model="two", threads=3, token_file="t")) is None
    assert service.known(CALL) is None
    await service.predict([CALL])
    assert (service.known(CALL) or ())[0].model == "two"
    assert loaded == [("one", 0, None), ("bad", 0, None), ("two", 3, "t")]
    service.close()


@pytest.mark.asyncio
async def test_the_token_of_a_model_server_is_read_from_the_file_that_settings_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLM_LSP_TOKEN", raising=False)
    file = tmp_path / "token"
    service = PredictionService(Settings(model="http://127.0.0.1:9", token_file=str(file)))
    assert await service.load() == f"{file}: the token cannot be read (No such file or directory); check the path"
    service.close()


def test_equal_contents_have_equal_keys() -> None:
    assert content_key(CALLER, QUERIES, "m") == content_key(replace(CALLER), (replace(QUERIES[0]),), "m")


@pytest.mark.parametrize(
    ("code", "queries", "model"),
    [
        (replace(CALLER, text="def f(): h()"), QUERIES, "m"),
        (replace(CALLER, callees=(Callee("def g(): 1"),)), QUERIES, "m"),
        (replace(CALLER, callees=(Callee("def g(): pass", 2),)), QUERIES, "m"),
        (replace(CALLER, callees=()), QUERIES, "m"),
        (replace(CALLER, work=WorkFacts(endless=0)), QUERIES, "m"),
        (replace(CALLER, language="ruby"), QUERIES, "m"),
        (replace(CALLER, basis="program"), QUERIES, "m"),
        (CALLER, (replace(QUERIES[0], metric="memory"),), "m"),
        (CALLER, (replace(QUERIES[0], device=None),), "m"),
        (CALLER, (replace(QUERIES[0], workload={}),), "m"),
        (CALLER, QUERIES * 2, "m"),
        (CALLER, QUERIES, "n"),
    ],
)
def test_every_part_counts(code: CodeText, queries: tuple[Query, ...], model: str) -> None:
    assert content_key(code, queries, model) != content_key(CALLER, QUERIES, "m")


def test_the_least_recently_used_entry_goes_first(make_prediction: Callable[..., Prediction]) -> None:
    cache = PredictionCache(max_units=2)
    cache.put(b"a", [make_prediction()])
    cache.put(b"b", [])
    assert cache.get(b"a") is not None
    cache.put(b"c", [])
    assert cache.get(b"b") is None
    assert cache.get(b"a") == (make_prediction(),)
    assert len(cache) == 2


def test_a_cache_that_holds_more_keeps_what_it_has() -> None:
    cache = PredictionCache(max_units=2)
    for key in (b"a", b"b"):
        cache.put(key, [])
    cache.hold(1)
    cache.hold(5)
    for key in (b"c", b"d", b"e", b"f"):
        cache.put(key, [])
    assert len(cache) == 5
    assert cache.get(b"a") is None
    assert all(cache.get(key) == () for key in (b"b", b"c", b"d", b"e", b"f"))


def test_a_cache_that_grows_bit_by_bit_moves_its_entries_rarely() -> None:
    cache = PredictionCache(max_units=2)
    moved = 0
    for units in range(1, 1000):
        before = cache._entries
        cache.hold(units)
        moved += cache._entries is not before
    assert moved <= 9


def test_a_transient_answer_is_forgotten_and_a_later_one_kept(make_prediction: Callable[..., Prediction]) -> None:
    now = [0.0]
    cache = PredictionCache(2, clock=lambda: now[0])
    unavailable = Abstention(AbstentionCode.SERVER_UNAVAILABLE, {"url": "http://a", "problem": "no connection"})
    gone = (make_prediction(abstained=unavailable),)
    cache.put(b"a", gone)
    now[0] = TRANSIENT_SECONDS - 0.1
    assert cache.get(b"a") == gone
    now[0] = TRANSIENT_SECONDS
    assert cache.get(b"a") is None
    cache.put(b"a", gone)
    there = (make_prediction(),)
    cache.put(b"a", there)
    now[0] *= 10
    assert cache.get(b"a") == there
    for key in (b"b", b"c", b"d"):
        cache.put(key, gone)
    assert len(cache) == 2
