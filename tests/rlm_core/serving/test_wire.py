"""Messages: round trips, versions, what is refused, and the one line that says where."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Band, Callee, CodeText, Prediction, Query
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.input_growth import INPUT_GROWTH, InputGrowthHead
from rlm_core.inference.model_store import builtin
from rlm_core.serving import wire
from rlm_core.serving.typed_json import WireError, dumps, loads, schemas
from rlm_core.types import (
    LEVELS,
    Abstention,
    AbstentionCode,
    Basis,
    CalibrationSource,
    CalledFunction,
    Calls,
    CallSite,
    CpuScale,
    KnownCost,
    Metric,
)

BASES = st.sampled_from(get_args(Basis))
METRICS = st.sampled_from(get_args(Metric))
WORKLOADS = st.dictionaries(st.text(), st.text(), max_size=4)
QUERIES = st.builds(Query, METRICS, st.none() | st.text(), WORKLOADS)
COSTS = st.builds(KnownCost, METRICS, *[st.floats(allow_nan=False)] * 3)
FUNCTIONS = st.builds(CalledFunction, st.text(), known=st.lists(COSTS, max_size=2).map(tuple))
SITES = st.builds(
    CallSite, st.lists(FUNCTIONS, max_size=2).map(tuple), st.integers(), st.integers(), st.floats(allow_nan=False)
)
CODES = st.builds(
    CodeText,
    st.text(),
    st.text(),
    BASES,
    st.lists(st.builds(Callee, st.text(), st.integers()), max_size=3).map(tuple),
    calls=st.none() | st.builds(Calls, st.lists(SITES, max_size=2).map(tuple), st.integers(), st.integers()),
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
def test_queries_arrive_unchanged(asked: list[tuple[CodeText, list[Query]]]) -> None:
    request = wire.Request(questions=tuple(wire.Question.about(code, queries) for code, queries in asked))
    found = wire.read_request(wire.write(request))
    assert [(question.code, list(question.queries)) for question in found.questions] == asked


@given(st.lists(st.lists(PREDICTIONS, max_size=3).map(tuple), max_size=3).map(tuple), st.text())
def test_predictions_arrive_as_they_were_made(predictions: tuple[tuple[Prediction, ...], ...], model: str) -> None:
    answer = wire.Answer(version=wire.VERSION, model=model, predictions=predictions)
    # NaN is not equal to itself, but shows the same.
    assert repr(wire.read(wire.Answer, wire.write(answer))) == repr(answer)


def test_the_facts_of_a_text_arrive_with_the_sums_that_growth_is_read_from() -> None:
    text = "def f(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
    code = CodeText(text, "python", "call", work=work_facts(text))
    request = wire.Request(questions=(wire.Question.about(code, [Query("latency")]),))
    [question] = wire.read_request(wire.write(request)).questions
    assert code.work is not None
    assert question.work is not None
    assert question.work == code.work
    assert question.work.repeated == code.work.repeated != ()
    head = InputGrowthHead(builtin() / INPUT_GROWTH)
    assert head.estimates(question.code) == head.estimates(code) != {}
    assert question.work.unknown == code.work.unknown


def test_the_description_of_a_server_arrives() -> None:
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
        ({"version": 1}, "version: must be 3, not 1"),
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


@dataclass(frozen=True)
class Inner:
    """Something small."""

    size: int
    share: float = 0.5


@dataclass(frozen=True)
class Outer:
    """Everything that a message may hold."""

    name: str
    kind: Literal["a", "b"]
    inners: tuple[Inner, ...] = ()
    notes: Mapping[str, tuple[str, ...]] | None = None
    flag: bool = False
    pair: tuple[str, float] | None = None


OUTERS = st.builds(
    Outer,
    st.text(),
    st.sampled_from(["a", "b"]),
    st.lists(st.builds(Inner, st.integers(), st.floats())).map(tuple),
    st.none() | st.dictionaries(st.text(), st.lists(st.text()).map(tuple)),
    st.booleans(),
    st.none() | st.tuples(st.text(), st.floats()),
)


@given(OUTERS)
def test_what_is_written_is_read_back(value: Outer) -> None:
    # NaN is not equal to itself, but shows the same.
    assert repr(loads(Outer, dumps(value), unknown="refuse")) == repr(value)


@given(OUTERS)
def test_what_is_written_is_json_for_every_reader(value: Outer) -> None:
    def refused(name: str) -> None:
        raise AssertionError(name)

    json.loads(dumps(value).decode("utf-8", "strict"), parse_constant=refused)


def test_half_a_character_is_written_as_a_question_mark() -> None:
    assert loads(Outer, dumps(Outer("\ud800x", "a")), unknown="refuse").name == "?x"


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("0.25", 0.25), ('"Infinity"', math.inf), ("-2e3", -2000.0)])
def test_a_number_may_be_an_integer_or_infinite(text: str, value: float) -> None:
    found = loads(Inner, f'{{"size": 1, "share": {text}}}'.encode(), unknown="refuse")
    assert found.share == value
    assert type(found.share) is float


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xff", "not UTF-8 (byte 0)"),
        (b"{", "not JSON (Expecting property name enclosed in double quotes, line 1, column 2)"),
        (b"[" * 100_000, "not JSON that can be read (nested too deeply)"),
        (b"[" + b"[]," * 1_500_000 + b"1]", "not JSON that can be read (too many arrays and objects)"),
        (b"9" * 10_000, "not JSON that can be read (a number has too many digits)"),
        (b'{"size": NaN}', 'not JSON (NaN is not a number; write "NaN" in quotes)'),
        (b"[1]", "must be an object, not [1]"),
        (b'{"name": "x"}', "`kind` is missing"),
        (b'{"name": 1, "kind": "a"}', "name: must be a string, not 1"),
        (b'{"name": "\\ud800", "kind": "a"}', "name: holds half of a surrogate pair, which is not a character"),
        (b'{"name": "x", "kind": "c"}', 'kind: must be one of "a", "b", not "c"'),
        (b'{"name": "x", "kind": ["a"]}', 'kind: must be one of "a", "b", not ["a"]'),
        (b'{"name": "x", "kind": "a", "flag": 0}', "flag: must be true or false, not 0"),
        (b'{"name": "x", "kind": "a", "inners": 3}', "inners: must be a list, not 3"),
        (b'{"name": "x", "kind": "a", "inners": [{"size": 1}, 4]}', "inners[1]: must be an object, not 4"),
        (
            b'{"name": "x", "kind": "a", "inners": [{"size": true}]}',
            "inners[0].size: must be an integer, not true",
        ),
        (
            b'{"name": "x", "kind": "a", "inners": [{"size": 1, "share": 1e999}]}',
            "inners[0].share: must be a finite number or one of 'NaN', 'Infinity', '-Infinity', not Infinity",
        ),
        (b'{"name": "x", "kind": "a", "notes": {"k": ["v", null]}}', 'notes."k"[1]: must be a string, not null'),
        (b'{"name": "x", "kind": "a", "pair": ["x"]}', 'pair: must be a list of 2, not ["x"]'),
        (
            b'{"name": "x", "kind": "a", "pair": ["x", "y"]}',
            "pair[1]: must be a finite number or one of 'NaN', 'Infinity', '-Infinity', not \"y\"",
        ),
        (
            b'{"name": "x", "kind": "a", "nome": 1}',
            'unknown field "nome"; known: name, kind, inners, notes, flag, pair',
        ),
    ],
)
def test_what_cannot_be_read_is_named_in_one_line(data: bytes, line: str) -> None:
    with pytest.raises(WireError) as caught:
        loads(Outer, data, unknown="refuse")
    assert str(caught.value) == line


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(WireError) as caught:
        loads(Outer, json.dumps({"name": ["x" * 10_000], "kind": "a"}).encode(), unknown="refuse")
    assert len(str(caught.value)) < 80


def test_unknown_fields_are_ignored_on_request() -> None:
    data = b'{"name": "x", "kind": "a", "new": 1, "inners": [{"size": 2, "newer": []}]}'
    assert loads(Outer, data, unknown="ignore") == Outer("x", "a", (Inner(2),))


def test_a_schema_says_what_is_read() -> None:
    found = schemas(Outer)
    assert found["Inner"] == {
        "type": "object",
        "description": "Something small.",
        "properties": {
            "size": {"type": "integer"},
            "share": {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}], "default": 0.5},
        },
        "required": ["size"],
    }
    outer = found["Outer"]
    assert outer["required"] == ["name", "kind"]
    assert outer["properties"]["kind"] == {"enum": ["a", "b"]}
    assert outer["properties"]["inners"]["items"] == {"$ref": "#/components/schemas/Inner"}
    pair = outer["properties"]["pair"]["anyOf"][0]
    assert (pair["prefixItems"][0], pair["items"], pair["minItems"]) == ({"type": "string"}, False, 2)
    notes = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    assert outer["properties"]["notes"] == {"anyOf": [notes, {"type": "null"}], "default": None}
