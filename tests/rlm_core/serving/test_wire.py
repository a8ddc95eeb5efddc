"""The messages: round trips of everything that a predictor is asked and answers, versions, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Band, Callee, CodeText, Prediction, Query
from rlm_core.serving import wire
from rlm_core.serving.codec import WireError
from rlm_core.types import LEVELS, Abstention, AbstentionCode, Basis, CalibrationSource, CpuScale, Metric

BASES = st.sampled_from(get_args(Basis))
METRICS = st.sampled_from(get_args(Metric))
WORKLOADS = st.dictionaries(st.text(), st.text(), max_size=4)
QUERIES = st.builds(Query, METRICS, st.none() | st.text(), WORKLOADS)
CODES = st.builds(
    CodeText, st.text(), st.text(), BASES, st.lists(st.builds(Callee, st.text(), st.integers()), max_size=3).map(tuple)
)
SOURCES = st.builds(
    CalibrationSource,
    st.text(),
    st.booleans(),
    st.none() | st.text(),
    st.none() | st.builds(CpuScale, st.floats(), st.text()),
)
BANDS = st.builds(Band, st.floats(), st.floats(), st.floats(), st.integers(), st.integers(), SOURCES)
ABSTENTIONS = st.builds(Abstention, st.sampled_from(AbstentionCode), WORKLOADS, st.none() | st.text())
QUANTILES: st.SearchStrategy[list[float]] = st.lists(st.floats(), min_size=17, max_size=17) | st.just([])
PREDICTIONS = st.builds(
    Prediction,
    BASES,
    METRICS,
    st.none() | st.text(),
    WORKLOADS,
    st.text(),
    st.none() | st.floats(),
    st.lists(BANDS, max_size=3).map(tuple),
    st.floats(),
    st.booleans(),
    st.none() | ABSTENTIONS,
    QUANTILES.map(tuple),
)
INFO = wire.Info(version=wire.VERSION, model="m-1", levels=LEVELS, devices={}, defaults=(), limits=wire.Limits())


@given(st.lists(st.tuples(CODES, st.lists(QUERIES, max_size=3)), max_size=4))
def test_questions_arrive_as_they_were_asked(asked: list[tuple[CodeText, list[Query]]]) -> None:
    request = wire.Request(questions=tuple(wire.Question.about(code, queries) for code, queries in asked))
    found = wire.read_request(wire.write(request))
    assert [(question.code, list(question.queries)) for question in found.questions] == asked


@given(st.lists(st.lists(PREDICTIONS, max_size=3).map(tuple), max_size=3).map(tuple), st.text())
def test_predictions_arrive_as_they_were_made(predictions: tuple[tuple[Prediction, ...], ...], model: str) -> None:
    answer = wire.Answer(version=wire.VERSION, model=model, predictions=predictions)
    # NaN is not equal to itself, but shows the same.
    assert repr(wire.read(wire.Answer, wire.write(answer))) == repr(answer)


def test_what_a_server_tells_about_itself_arrives() -> None:
    defaults = (wire.Defaults("kernel", ("triton", "ttir"), (Query("latency", "gpu-a", {"dtype": "fp16"}),)),)
    info = replace(INFO, devices={"kernel": ("gpu-a", "gpu-b")}, defaults=defaults)
    assert wire.read(wire.Info, wire.write(info)) == info


def test_a_question_needs_neither_version_nor_device_nor_callees() -> None:
    question = {"text": "x", "language": "python", "basis": "call", "queries": [{"metric": "memory"}]}
    found = wire.read_request(json.dumps({"questions": [question]}).encode())
    assert found.questions == (wire.Question("x", "python", "call", (Query("memory"),)),)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"version": 1}, "version: must be 2, not 1"),
        ({"questions": [{"text": "x"}]}, "questions[0]: `language` is missing"),
        ({"quieres": []}, 'unknown field "quieres"; known: version, questions'),
    ],
)
def test_a_request_of_another_kind_is_refused(change: dict[str, Any], line: str) -> None:
    with pytest.raises(WireError) as caught:
        wire.read_request(json.dumps({"questions": [], **change}).encode())
    assert str(caught.value) == line


def test_an_answer_of_a_newer_server_may_say_more() -> None:
    data = json.loads(wire.write(wire.Answer(version=wire.VERSION, model="m", predictions=())))
    assert wire.read(wire.Answer, json.dumps({**data, "seconds": 0.1}).encode()).model == "m"


def test_quantiles_at_other_levels_are_refused() -> None:
    with pytest.raises(WireError, match="levels: must be the levels of this rlm-lsp"):
        wire.read(wire.Info, wire.write(replace(INFO, levels=(0.1, 0.5, 0.9))))
    prediction = Prediction("call", "latency", None, {}, "m", 1.0, (), 0.0, False, quantiles=(1.0, 2.0))
    with pytest.raises(WireError, match="2 quantiles where 17 belong"):
        wire.read(wire.Answer, wire.write(wire.Answer(version=wire.VERSION, model="m", predictions=((prediction,),))))


def test_limits_that_let_nothing_through_are_refused() -> None:
    with pytest.raises(WireError, match="limits: must all be positive"):
        wire.read(wire.Info, wire.write(replace(INFO, limits=wire.Limits(texts=0))))
