"""Words about sizes: what a number holds for, curves, bounds, and the labels of hints that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.anchoring import measured_prediction
from rlm_core.inference.cost_curve import curve_of
from rlm_core.inference.sized_predictor import sized
from rlm_core.queries.size_comments import read_quantity
from rlm_core.types import (
    CallCount,
    CostAtSizes,
    Crossing,
    GrowthEstimate,
    HoldsFor,
    Prediction,
    SizedCalls,
    SizedPrediction,
    SizeSpread,
    SizeValue,
)
from rlm_lsp.rendering import labels, size_words
from rlm_lsp.rendering.hint_label import label
from rlm_lsp.rendering.json_rows import prediction_fields
from rlm_lsp.settings.model import MAX_LABEL

from tests.rlm_core.inference.test_anchoring import cost

MakePrediction = Callable[..., Prediction]
ITEMS = SizeValue("items", 10_000.0, "settings", "shop.total")
SEND = CallCount("fetch()", 10_000.0)
SIZED = (SizedCalls({"items": 10.0}, 1e-5, 4), SizedCalls({"items": 100.0}, 1e-4, 4))


def at(prediction: Prediction, kind: str = "arithmetic", **more: object) -> SizedPrediction:
    values = {"kind": kind, "sizes": (ITEMS,), **more}
    assert prediction.median is not None
    return sized(
        prediction,
        prediction,
        CostAtSizes(**values),  # type: ignore[arg-type]
        prediction.median,
        prediction.bands,
        prediction.quantiles,
    )


def measured(prediction: Prediction, **values: object) -> Prediction:
    return measured_prediction(prediction, replace(cost(), **values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (12.5, "12.5"),
        (999, "999"),
        (1000, "1k"),
        (9999, "10k"),
        (10_000, "10k"),
        (1_234_567, "1.23M"),
    ],
)
def test_a_size_is_short(value: float, text: str) -> None:
    assert labels.size(value) == text


@given(st.floats(1, 9e14))
def test_a_size_that_is_shown_can_be_written_in_a_comment(value: float) -> None:
    assert read_quantity(labels.size(value)) == pytest.approx(value, rel=6e-3)


def test_sizes_are_named_with_their_sources() -> None:
    other = SizeValue("n", 5.0, "comment", "line 3")
    assert size_words.sizes([ITEMS, other]) == "items=10k n=5"
    assert size_words.origins([ITEMS, other]) == "items=10k from the settings (shop.total), n=5 from a comment (line 3)"
    assert size_words.sizes([SizeValue(str(place), 1.0, "comment") for place in range(5)]).endswith(" +2")


def test_a_bound_names_the_calls_on_top_of_it() -> None:
    assert size_words.bound("latency", CostAtSizes("bound", (ITEMS,), least=0.012, calls=(SEND,))) == (
        "≥12 ms + 10k × fetch()"
    )
    once = CostAtSizes("bound", (ITEMS,), least=0.012, calls=(CallCount("open()", 1.0), SEND, SEND, SEND))
    assert size_words.bound("latency", once) == "≥12 ms + open() + 10k × fetch() + 10k × fetch() + more"


def test_a_curve_says_where_it_leads_and_how_far_that_is_from_what_was_measured() -> None:
    curve = curve_of(replace(cost(), sized=SIZED))
    assert curve is not None
    assert size_words.curve_words(curve) == "~n in items: 1k 1 ms (0.81–1.2 ms), 10× beyond what was measured"
    assert size_words.exponent(replace(curve, power=1.13)) == "~n^1.1"
    assert size_words.exponent(replace(curve, fixed=1.0)) == "flat"


def test_a_crossing_says_which_text_is_cheaper() -> None:
    assert size_words.crossing_words(Crossing("items", 41.3, True)) == "costs less from about items=41 on"
    assert size_words.crossing_words(Crossing("items", 41.3, False)) == "costs more from about items=41 on"


def test_a_number_says_for_which_inputs_it_holds(make_prediction: MakePrediction) -> None:
    small = make_prediction()
    assert size_words.holds_words(small) == "for small inputs, like those of tests"
    assert size_words.holds_words(at(small)) == "at items=10k"
    recorded = measured(small, sizes=(("items", SizeSpread(3, 12, 40)), ("rows", SizeSpread(2, 2, 2))))
    assert size_words.holds_words(recorded) == "at items 3–40, rows 2"
    assert at(small, "bound").holds_for is HoldsFor.SMALL_INPUTS


def test_the_label_of_a_cost_at_sizes_names_them(make_prediction: MakePrediction) -> None:
    assert label([at(make_prediction(1e-4, 5e-4))]) == "100–500 µs at items 10k"
    assert label([at(make_prediction(1e-4, 5e-4))], "median") == "300 µs at items 10k"
    assert label([at(make_prediction(1e-4, 5e-4))], width=20) == "100–500 µs at 10k"


def test_the_label_of_a_measurement_has_its_sizes(make_prediction: MakePrediction) -> None:
    shown = measured(make_prediction(), median=5.6e-3, sizes=(("items", SizeSpread(3, 12, 40)),))
    assert label([shown]) == "✓ 5.6 ms at items 3–40"
    assert label([shown], width=17) == "✓ 5.6 ms at 3–40"
    assert label([shown], width=9) == "✓ 5.6 ms"


def test_the_label_names_the_size_that_matters(make_prediction: MakePrediction) -> None:
    sizes = (("width", SizeSpread(900, 900, 900)), ("items", SizeSpread(3, 12, 40)))
    shown = measured(make_prediction(), median=5.6e-3, sizes=sizes)
    assert label([shown]) == "✓ 5.6 ms at width 900"
    growth = GrowthEstimate("n", 0.9, ("items",))
    assert label([replace(shown, growth=growth)]) == "✓ 5.6 ms at items 3–40"


def test_the_label_of_a_bound_takes_the_place_of_a_number_for_small_inputs(make_prediction: MakePrediction) -> None:
    assert label([at(make_prediction(), "bound", least=0.012, calls=(SEND,))]) == "≥12 ms + 10k × fetch()"
    many = at(make_prediction(), "bound", least=0.012, calls=(CallCount("g()", 9.0), SEND))
    assert label([many]) == "≥12 ms + 9 × g() + more"


def test_a_number_that_other_functions_suggest_is_called_predicted(make_prediction: MakePrediction) -> None:
    shown = at(make_prediction(1e-4, 5e-4), "predicted", least=62e-6, calls=(SEND,))
    assert label([shown]) == "100–500 µs at items 10k"
    assert shown.holds_for is HoldsFor.GIVEN_SIZES
    [note] = size_words.size_notes(shown)
    assert note == "latency predicted at items=10k from the settings (shop.total); ≥62 µs + 10k × fetch()"
    memory = make_prediction(metric="memory")
    assert size_words.hover_lines([shown, memory]) == [
        "sizes: items=10k from the settings (shop.total)",
        "the latency at these sizes is predicted from other functions that were measured at several sizes",
        "latency ≥62 µs + 10k × fetch() at these sizes",
        f"latency for small inputs, like those of tests: {labels.marked_spread(shown.small)}",
    ]
    mixed = "latency at items=10k and peak memory for small inputs, like those of tests"
    assert size_words.mixed_sizes([shown, memory]) == mixed
    assert size_words.mixed_sizes([shown]) == size_words.mixed_sizes([memory]) == ""


def test_a_bound_that_says_nothing_is_not_shown_next_to_a_number(make_prediction: MakePrediction) -> None:
    shown = at(make_prediction(1e-4, 5e-4), "predicted")
    assert size_words.size_notes(shown) == ["latency predicted at items=10k from the settings (shop.total)"]
    assert not any("≥" in line for line in size_words.hover_lines([shown]))


def test_a_curve_has_its_own_mark(make_prediction: MakePrediction) -> None:
    assert label([at(make_prediction(1e-4, 5e-4), "curve", beyond=10.0)]) == "~ 300 µs at items 10k"


@pytest.mark.parametrize("width", range(5, MAX_LABEL + 1))
@pytest.mark.parametrize("kind", ["arithmetic", "curve", "predicted", "bound"])
def test_no_label_is_longer_than_its_width(make_prediction: MakePrediction, kind: str, width: int) -> None:
    name = SizeValue("self.customers[].orders", 123_456.0, "comment")
    calls = (CallCount("self.client.fetch_everything_from_there()", 123_456.0), SEND)
    shown = at(make_prediction(1e-4, 5e-4), kind, sizes=(name, ITEMS), least=0.012, calls=calls)
    assert len(label([shown, make_prediction(metric="memory")], width=width)) <= width


def test_the_fields_of_a_cost_at_sizes(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(at(make_prediction(1e-4, 5e-4)))
    assert fields["holds_for"] == "given sizes"
    assert fields["sizes"] == {"items": {"value": 10_000.0, "source": "settings", "rule": "shop.total"}}
    assert fields["small_inputs"]["median"] == fields["median"]
    assert fields["bound"] is None
    bound = prediction_fields(at(make_prediction(), "bound", least=0.012, calls=(SEND,)))
    assert bound["bound"] == {"least": 0.012, "calls": {"fetch()": 10_000.0}}
    assert bound["small_inputs"] is None
    assert bound["holds_for"] == "small inputs"
    predicted = prediction_fields(at(make_prediction(1e-4, 5e-4), "predicted", least=0.012, calls=(SEND,)))
    assert predicted["bound"] == bound["bound"]
    assert predicted["small_inputs"] == fields["small_inputs"]
    assert [one["evidence"] for one in (fields, bound, predicted)] == ["arithmetic", "bound", "predicted"]
    assert prediction_fields(make_prediction())["evidence"] is None


def test_the_fields_of_a_measurement_have_its_sizes_and_its_curve(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(measured(make_prediction(), sizes=(("items", SizeSpread(3, 12, 40)),), sized=SIZED))
    assert fields["holds_for"] == "measured sizes"
    assert fields["sizes"] == {"items": {"source": "recorded", "least": 3, "median": 12, "most": 40}}
    curve = fields["curve"]
    assert (curve["size"], curve["from"], curve["measured_to"], curve["holds_to"]) == ("items", 10, 100, 1000)
    assert curve["exponent"] == pytest.approx(1)
    assert [point["size"] for point in curve["points"]] == [10, 100]
