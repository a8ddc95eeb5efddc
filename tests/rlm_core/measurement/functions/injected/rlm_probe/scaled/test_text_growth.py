"""Texts grow and keep their form: JSON stays JSON, markup closes, numbers and paths and names stay such."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe.scaled.text_growth import distinct_texts, text_ways
from rlm_core.measurement.functions.injected.rlm_probe.scaled.value_growth import ways_to_grow

DOCUMENTS = st.recursive(
    st.integers(-1000, 1000) | st.text("abc", max_size=4) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
).filter(lambda value: isinstance(value, (list, dict)) and bool(value))


def grown(text: str, factor: int) -> list[str]:
    return [way(factor) for way in text_ways(text, ways_to_grow)]


@given(DOCUMENTS, st.sampled_from([None, 2]), st.sampled_from([3, 10]))
def test_json_stays_valid_and_keeps_its_layout(value: Any, indent: int | None, factor: int) -> None:
    text = json.dumps(value, indent=indent)
    ways = list(ways_to_grow(value))
    for way, larger in zip(ways, grown(text, factor), strict=False):
        assert json.loads(larger) == json.loads(json.dumps(way(factor)))
        assert ("\n" in larger) == ("\n" in text)


@pytest.mark.parametrize(
    "text", ["<a><b/>x</a>", '<?xml version="1.0"?><list kind="x"><i>1</i></list>\n', "<p>hello <i>you</i></p>"]
)
def test_markup_stays_well_formed(text: str) -> None:
    larger = grown(text, 5)[0]
    assert len(ElementTree.fromstring(larger)) == 5 * len(ElementTree.fromstring(text))


@pytest.mark.parametrize(
    ("text", "larger"),
    [
        ("12", "121212"),
        ("-0.5", "-0.555"),
        ("src/a/b.txt", "src/a/src/a/src/a/b.txt"),
        ("http://host/a/b?q=1", "http://host/a/host/a/host/a/b?q=1"),
        ("a, b", "a, b, a, b, a, b"),
        ("one two", "one two one two one two"),
        ("a\nb\n", "a\nb\na\nb\na\nb\n"),
        ("a\nb", "a\nb\na\nb\na\nb"),
        ("f(x, y)", "f(x, y, x, y, x, y)"),
        ("name", "namenamename"),
        ("a.b", "a.b.a.b.a.b"),
    ],
)
def test_the_first_way_keeps_the_form(text: str, larger: str) -> None:
    assert grown(text, 3)[0] == larger


@given(st.text(min_size=1, max_size=30), st.sampled_from([2, 5]))
def test_any_text_can_grow_unless_it_is_a_date(text: str, factor: int) -> None:
    assert all(len(larger) >= len(text) for larger in grown(text, factor))
    assert not grown("2024-01-02T10:00", factor)


@given(st.lists(st.text("ab1. ", min_size=1, max_size=5), min_size=1, max_size=6, unique=True), st.integers(1, 10))
def test_distinct_texts_stay_distinct_and_sorted(texts: list[str], factor: int) -> None:
    larger = distinct_texts(texts, len(texts) * factor)
    assert len(set(larger)) == len(texts) * factor
    assert set(texts) <= set(larger)
    ordered = distinct_texts(sorted(texts), len(texts) * factor)
    assert len(texts) == 1 or ordered == sorted(ordered)


def test_file_names_keep_their_suffix_and_numbers_their_width() -> None:
    assert distinct_texts(["b.txt", "a.txt"], 4)[2:] == ["b1.txt", "a1.txt"]
    assert distinct_texts(["id-0001"], 3) == ["id-0001", "id-1001", "id-2001"]
