"""The growth head: features, weights on disk, and the growth in predictions of the model that ships."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import growth
from rlm_core.inference.growth_features import BITS, FEATURES, growth_features, unit_weights
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.analysis import Analyser
from rlm_core.serving import wire
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import GROWTH_CLASSES, Abstention, AbstentionCode, CodeText, GrowthEstimate, Prediction, Query

PROGRAMS = {
    "1": "class Solution { public: int f(int a, int b) { return a + b; } };",
    "n": "class Solution { public: int f(vector<int>& nums) { int s = 0; for (int x : nums) s += x; return s; } };",
    "n log n": "class Solution { public: int f(vector<int>& a) { sort(a.begin(), a.end()); return a[0]; } };",
    "n^2": "class Solution { public: int f(vector<int>& nums) { int n = nums.size(), s = 0; for (int i = 0; i < n; ++i)"
    " for (int j = i + 1; j < n; ++j) if (nums[i] == nums[j]) ++s; return s; } };",
    "log n": "class Solution { public: int f(vector<int>& nums, int target) { int l = 0, r = nums.size() - 1;"
    " while (l < r) { int mid = (l + r) / 2; if (nums[mid] >= target) r = mid; else l = mid + 1; } return l; } };",
}
SUM = "def total(values):\n    count = 0\n    for value in values:\n        count += unknown(value)\n    return count\n"


@pytest.fixture(scope="module")
def head() -> growth.GrowthHead:
    return growth.GrowthHead(builtin() / growth.GROWTH)


@pytest.fixture(scope="module")
def predictor() -> OnnxPredictor:
    return OnnxPredictor(builtin(), threads=1)


@pytest.mark.parametrize("expected", PROGRAMS)
def test_plain_programs_have_the_class_that_anyone_would_state(head: growth.GrowthHead, expected: str) -> None:
    estimate = head.estimates(CodeText(PROGRAMS[expected], "cpp", "program"))["latency"]
    assert estimate.growth_class == expected
    assert estimate.probability > 0.4


def test_probabilities_sum_to_one(head: growth.GrowthHead) -> None:
    table = head.probabilities(CodeText(PROGRAMS["n"], "cpp", "program"))
    assert table.shape == (len(growth.METRICS), len(GROWTH_CLASSES))
    assert table.sum(axis=1) == pytest.approx(1)


def test_only_programs_with_a_grammar_have_growth(head: growth.GrowthHead) -> None:
    for code in (
        CodeText("def kernel(): pass", "triton", "kernel"),
        CodeText("%0 = tt.load", "ttir", "kernel"),
        CodeText(" \n", "python", "program"),
        CodeText(SUM, "python", "call"),
    ):
        assert head.estimates(code) == {}


def test_predictions_of_functions_and_programs_have_growth(predictor: OnnxPredictor) -> None:
    queries = [Query("latency"), Query("memory")]
    code = Analyser().analyse(ParsedSource(SUM.encode(), "python"))[0].code
    answers = predictor.predict([code, CodeText(PROGRAMS["n"], "cpp", "program")], [queries, queries])
    for line in answers:
        for answer in line:
            assert answer.growth is not None
            assert 0 < answer.growth.probability <= 1
    assert answers[0][0].growth is not None
    assert answers[0][0].growth.sizes == ("values",)


def test_growth_travels_over_the_wire(predictor: OnnxPredictor) -> None:
    (answers,) = predictor.predict([CodeText(PROGRAMS["n log n"], "cpp", "program")], [[Query("latency")]])
    message = wire.Answer(version=wire.VERSION, model="m", predictions=(tuple(answers),))
    assert wire.read(wire.Answer, wire.write(message)) == message


@settings(deadline=None, max_examples=15)
@given(st.lists(st.from_regex(r"[a-z]{3,9}x", fullmatch=True), min_size=3, max_size=3, unique=True))
def test_renaming_variables_and_layout_do_not_change_the_growth_of_a_function(names: list[str]) -> None:
    head = growth.GrowthHead(builtin() / growth.GROWTH)
    plain = head.probabilities(CodeText(SUM, "python", "call"))
    renamed = SUM
    for old, new in zip(("values", "count", "value"), names, strict=True):
        renamed = re.sub(rf"\b{old}\b", new, renamed)
    changed = renamed.replace("    count", "    # a comment\n    count").replace("(value)", "( value )")
    np.testing.assert_array_equal(head.probabilities(CodeText(changed, "python", "call")), plain)


def test_weights_are_the_same_after_a_round_trip(head: growth.GrowthHead, tmp_path: Path) -> None:
    growth.save(head.weights, tmp_path / "w")
    again = growth.load(tmp_path / "w")
    for name in growth.GrowthWeights.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(head.weights, name))
    assert (builtin() / growth.GROWTH).stat().st_size < 1.6e6


def test_damaged_weights_are_refused(head: growth.GrowthHead, tmp_path: Path) -> None:
    content = (builtin() / growth.GROWTH).read_bytes()
    for number, broken in enumerate((b"", content[:1000], content.replace(b"last_bias", b"xast_bias"))):
        path = tmp_path / str(number)
        path.write_bytes(broken)
        with pytest.raises(ModelError):
            growth.load(path)
    with pytest.raises(ModelError):
        growth.load(tmp_path / "missing")


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=200), st.sampled_from(["python", "cpp", "rust", "go"]))
def test_any_text_has_finite_features_in_ascending_buckets(text: str, language: str) -> None:
    features = growth_features(text, language)
    assert (np.diff(features.buckets) > 0).all()
    assert ((features.buckets >= 0) & (features.buckets < 2 << BITS)).all()
    assert features.dense.shape == (len(FEATURES),)
    assert np.isfinite(features.dense).all()
    weights = unit_weights(features, np.ones(2 << BITS, np.float32))
    assert np.linalg.norm(weights) <= np.sqrt(2) + 1e-5


def test_with_growth_leaves_other_metrics_alone() -> None:
    code, reason = CodeText(PROGRAMS["n"], "cpp", "program"), Abstention(AbstentionCode.TOO_FEW_GROUPS)
    plain = [Prediction.missing(code, query, "m", reason) for query in (Query("latency"), Query("memory"))]
    estimate = GrowthEstimate("n", 0.9)
    first, second = growth.with_growth(plain, {"latency": estimate})
    assert (first.growth, second.growth) == (estimate, None)


@pytest.mark.parametrize(
    "loop", ["range(1e999)", "range(10**400)", "range(9e307 * 9e99)", "-5", "range(0, 1e99, 1e-300)"]
)
def test_a_loop_may_have_any_number_as_its_bound(loop: str) -> None:
    features = growth_features(f"def f():\n    for i in {loop}:\n        pass\n", "python")
    assert np.isfinite(features.dense).all()
