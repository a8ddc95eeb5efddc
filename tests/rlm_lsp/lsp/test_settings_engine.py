"""Settings put to use: what the model is asked for several folders, sizes in queries, and loading a model anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rlm_core import CodeText, ModelError, Prediction, Query
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.types import Basis
from rlm_lsp.lsp.engine import Engine
from rlm_lsp.lsp.features.configuration import asked, is_configuration
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.store import SettingsStore

pytestmark = pytest.mark.timeout(30)

KERNEL = CodeText("def k(): pass", "triton", "kernel", (), ((("M", "64"), ("N", "1")), (("M", "128"), ("N", "1"))))
CALL = CodeText("def f(): pass", "python", "call", (), ((("M", "64"),),))


class Echo:
    """Answers each query with a prediction that says what it was."""

    def __init__(self, make: Callable[..., Prediction], model_id: str = "echo-1") -> None:
        self._make, self.model_id = make, model_id

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        device = "own" if basis == "kernel" else "x86-64"
        return tuple(Query(metric, device, {"mode": "forward"}) for metric in ("latency", "memory"))

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return ("own",)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [
            [self._make(metric=q.metric, device=q.device, workload=q.workload, model=self.model_id) for q in line]
            for line in queries
        ]


def folders(tmp_path: Path, **files: str) -> SettingsStore:
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "rlm-lsp.toml").write_text(text)
    return SettingsStore(None, [tmp_path / name for name in files], {}, tmp_path / "none.toml")


def test_all_that_any_folder_shows_is_asked(tmp_path: Path) -> None:
    assert asked(SettingsStore(None, (), {}, tmp_path / "none.toml")) == QuerySelection(Settings().metrics, ())
    store = folders(tmp_path, one='devices = ["a100"]\n', two='devices = ["l40s", "a100"]\nmetrics = ["latency"]\n')
    found = asked(store)
    assert set(found.metrics or ()) == {"latency", "memory", "accuracy"}
    # None: files outside of the folders show the model's own device.
    assert set(found.devices) == {None, "a100", "l40s"}


def test_a_kernel_is_asked_at_each_of_its_sizes_on_each_device(make_prediction: Callable[..., Prediction]) -> None:
    found = queries_for(Echo(make_prediction), KERNEL, QuerySelection(("latency",), (None, "a100")))
    assert [(query.device, query.workload["M"], query.workload["mode"]) for query in found] == [
        ("own", "64", "forward"),
        ("a100", "64", "forward"),
        ("own", "128", "forward"),
        ("a100", "128", "forward"),
    ]


def test_asked_sizes_take_the_place_of_the_files_and_other_values_join_them(
    make_prediction: Callable[..., Prediction],
) -> None:
    predictor = Echo(make_prediction)
    [sized] = queries_for(predictor, KERNEL, QuerySelection(("latency",), workload={"arg0": "7x7"}))
    assert sized.workload == {"mode": "forward", "arg0": "7x7"}
    typed = queries_for(predictor, KERNEL, QuerySelection(("latency",), workload={"dtype": "bf16"}))
    assert [(query.workload["M"], query.workload["dtype"]) for query in typed] == [("64", "bf16"), ("128", "bf16")]


def test_sizes_mean_nothing_for_a_function(make_prediction: Callable[..., Prediction]) -> None:
    predictor = Echo(make_prediction)
    assert queries_for(predictor, CALL) == predictor.default_queries("call", "python")


@pytest.mark.asyncio
async def test_each_folder_sees_what_it_wants_of_all_that_is_known(make_prediction: Callable[..., Prediction]) -> None:
    engine = Engine(Settings(), lambda model, threads: Echo(make_prediction))
    engine.ask(QuerySelection(("latency", "memory"), (None, "a100")))
    assert engine.cached(KERNEL, QuerySelection(("latency",))) is None
    await engine.load()
    await engine.predict([KERNEL])
    assert len(engine.cached(KERNEL) or ()) == 8
    own = engine.cached(KERNEL, QuerySelection(("latency",))) or ()
    assert [(one.metric, one.device, one.workload["M"]) for one in own] == [
        ("latency", "own", "64"),
        ("latency", "own", "128"),
    ]
    assert {one.device for one in engine.cached(KERNEL, QuerySelection(None, ("a100",))) or ()} == {"a100"}
    engine.close()


@pytest.mark.asyncio
async def test_a_model_is_loaded_anew_and_a_bad_one_leaves_the_one_before(
    make_prediction: Callable[..., Prediction],
) -> None:
    loaded: list[tuple[str, int, str | None]] = []

    def load(model: str, threads: int, token_file: str | None = None) -> Predictor:
        loaded.append((model, threads, token_file))
        if model == "bad":
            raise ModelError("bad: missing")
        return Echo(make_prediction, model)

    engine = Engine(Settings(model="one"), load)
    assert await engine.load() is None
    await engine.predict([CALL])
    assert await engine.reload(Settings(model="bad")) == "bad: missing"
    assert engine.ready
    assert (engine.cached(CALL) or ())[0].model == "one"
    assert await engine.reload(Settings(model="two", threads=3, token_file="t")) is None
    assert engine.cached(CALL) is None
    await engine.predict([CALL])
    assert (engine.cached(CALL) or ())[0].model == "two"
    assert loaded == [("one", 0, None), ("bad", 0, None), ("two", 3, "t")]
    engine.close()


@pytest.mark.asyncio
async def test_the_token_of_a_model_server_is_read_from_the_file_that_settings_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLM_LSP_TOKEN", raising=False)
    file = tmp_path / "token"
    engine = Engine(Settings(model="http://127.0.0.1:9", token_file=str(file)))
    assert await engine.load() == f"{file}: the token cannot be read (No such file or directory); check the path"
    engine.close()


def test_configuration_files_are_known_by_name() -> None:
    assert is_configuration("file:///a/pyproject.toml")
    assert is_configuration("file:///a/rlm-lsp.toml")
    assert not is_configuration("file:///a/pyproject.toml.py")
