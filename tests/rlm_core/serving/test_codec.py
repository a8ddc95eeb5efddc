"""Dataclasses <-> JSON: what is accepted, and the one line that says where something is not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.serving import codec
from rlm_core.serving.codec import WireError


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


OUTERS = st.builds(
    Outer,
    st.text(),
    st.sampled_from(["a", "b"]),
    st.lists(st.builds(Inner, st.integers(), st.floats())).map(tuple),
    st.none() | st.dictionaries(st.text(), st.lists(st.text()).map(tuple)),
    st.booleans(),
)


@given(OUTERS)
def test_what_is_written_is_read_back(value: Outer) -> None:
    # NaN is not equal to itself, but shows the same.
    assert repr(codec.loads(Outer, codec.dumps(value), unknown="refuse")) == repr(value)


@given(OUTERS)
def test_what_is_written_is_json_for_every_reader(value: Outer) -> None:
    def refused(name: str) -> None:
        raise AssertionError(name)

    json.loads(codec.dumps(value).decode("utf-8", "strict"), parse_constant=refused)


def test_half_a_character_is_written_as_a_question_mark() -> None:
    assert codec.loads(Outer, codec.dumps(Outer("\ud800x", "a")), unknown="refuse").name == "?x"


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("0.25", 0.25), ('"Infinity"', math.inf), ("-2e3", -2000.0)])
def test_a_number_may_be_an_integer_or_infinite(text: str, value: float) -> None:
    found = codec.loads(Inner, f'{{"size": 1, "share": {text}}}'.encode(), unknown="refuse")
    assert found.share == value
    assert type(found.share) is float


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xff", "not UTF-8 (byte 0)"),
        (b"{", "not JSON (Expecting property name enclosed in double quotes, line 1, column 2)"),
        (b"[" * 100_000, "not JSON that can be read (nested too deeply)"),
        (b"9" * 10_000, "not JSON that can be read (a number has too many digits)"),
        (b'{"size": NaN}', 'not JSON (NaN is no number; write "NaN" in quotes)'),
        (b"[1]", "must be an object, not [1]"),
        (b'{"name": "x"}', "`kind` is missing"),
        (b'{"name": 1, "kind": "a"}', "name: must be a string, not 1"),
        (b'{"name": "\\ud800", "kind": "a"}', "name: holds half of a surrogate pair, which is no character"),
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
        (b'{"name": "x", "kind": "a", "nome": 1}', 'unknown field "nome"; known: name, kind, inners, notes, flag'),
    ],
)
def test_what_cannot_be_read_is_named_in_one_line(data: bytes, line: str) -> None:
    with pytest.raises(WireError) as caught:
        codec.loads(Outer, data, unknown="refuse")
    assert str(caught.value) == line


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(WireError) as caught:
        codec.loads(Outer, json.dumps({"name": ["x" * 10_000], "kind": "a"}).encode(), unknown="refuse")
    assert len(str(caught.value)) < 80


def test_unknown_fields_are_passed_over_where_that_is_asked() -> None:
    data = b'{"name": "x", "kind": "a", "new": 1, "inners": [{"size": 2, "newer": []}]}'
    assert codec.loads(Outer, data, unknown="ignore") == Outer("x", "a", (Inner(2),))


def test_a_schema_says_what_is_read() -> None:
    found = codec.schemas(Outer)
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
    notes = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    assert outer["properties"]["notes"] == {"anyOf": [notes, {"type": "null"}], "default": None}
