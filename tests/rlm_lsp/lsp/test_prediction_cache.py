"""The prediction cache: keys tell contents apart, size is bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rlm_core import Callee, CodeText, Prediction, Query
from rlm_lsp.lsp.prediction_cache import TRANSIENT_SECONDS, PredictionCache, content_key

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(30)

CODE = CodeText("def f(): g()", "python", "call", (Callee("def g(): pass"),))
QUERIES = (Query("latency", "x86-64", {"runtime": "cpython"}),)


def test_equal_contents_have_equal_keys() -> None:
    assert content_key(CODE, QUERIES, "m") == content_key(replace(CODE), (replace(QUERIES[0]),), "m")


@pytest.mark.parametrize(
    ("code", "queries", "model"),
    [
        (replace(CODE, text="def f(): h()"), QUERIES, "m"),
        (replace(CODE, callees=(Callee("def g(): 1"),)), QUERIES, "m"),
        (replace(CODE, callees=(Callee("def g(): pass", 2),)), QUERIES, "m"),
        (replace(CODE, callees=()), QUERIES, "m"),
        (replace(CODE, language="ruby"), QUERIES, "m"),
        (replace(CODE, basis="program"), QUERIES, "m"),
        (CODE, (replace(QUERIES[0], metric="memory"),), "m"),
        (CODE, (replace(QUERIES[0], device=None),), "m"),
        (CODE, (replace(QUERIES[0], workload={}),), "m"),
        (CODE, QUERIES * 2, "m"),
        (CODE, QUERIES, "n"),
    ],
)
def test_every_part_counts(code: CodeText, queries: tuple[Query, ...], model: str) -> None:
    assert content_key(code, queries, model) != content_key(CODE, QUERIES, "m")


def test_the_least_recently_used_entry_goes_first(make_prediction: Callable[..., Prediction]) -> None:
    cache = PredictionCache(limit=2)
    cache.put(b"a", [make_prediction()])
    cache.put(b"b", [])
    assert cache.get(b"a") is not None
    cache.put(b"c", [])
    assert cache.get(b"b") is None
    assert cache.get(b"a") == (make_prediction(),)
    assert len(cache) == 2


def test_a_transient_answer_is_forgotten_and_a_later_one_kept(make_prediction: Callable[..., Prediction]) -> None:
    now = [0.0]
    cache = PredictionCache(2, clock=lambda: now[0])
    gone = (make_prediction(abstained=NO_NUMBER),)
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
