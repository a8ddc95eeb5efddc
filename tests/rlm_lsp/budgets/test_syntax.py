"""The language of budgets: what parses, what is told about what does not, and that rendering is exact."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rlm_core.queries.devices import canonical_device
from rlm_core.types import Metric
from rlm_lsp.budgets.syntax import SCALES, Budget, bound, parse, render

_WORDS = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_-.", min_size=1, max_size=12)
_DEVICES = st.one_of(_WORDS, st.text('abc xyz,()<>="0'.replace('"', ""), min_size=1, max_size=12)).filter(
    lambda name: bool(name.strip()) and canonical_device(name) is None
)
_VALUES: dict[Metric, st.SearchStrategy[float]] = {
    "latency": st.floats(1e-12, 1e9),
    "memory": st.floats(1e-6, 1e18),
    "accuracy": st.floats(1e-9, 1.0),
    "energy": st.floats(1e-9, 1e8),
}


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    metric = draw(st.sampled_from(tuple(SCALES)))
    names = _WORDS.filter(lambda name: name not in ("device", "on"))
    workload = draw(st.dictionaries(names, _WORDS, max_size=3))
    device = draw(st.none() | _DEVICES | st.just("nvidia-a100-sxm4-80gb"))
    return Budget(metric, draw(_VALUES[metric]), device, tuple(sorted(workload.items())))


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(budgets(), min_size=1, max_size=4, unique_by=lambda b: (b.metric, b.device, b.workload)))
def test_parsing_what_was_rendered_gives_the_same_budgets(written: list[Budget]) -> None:
    found, mistakes = parse(render(written))
    assert mistakes == ()
    assert [entry.budget for entry in found] == written


@given(st.text(alphabet='latencymory <>=,."0123456789µμ%KiBs on\t', max_size=60))
def test_any_text_gives_budgets_and_mistakes_inside_it(text: str) -> None:
    found, mistakes = parse(text)
    assert found or mistakes
    places = [*((entry.start, entry.end) for entry in found), *((entry.start, entry.end) for entry in mistakes)]
    assert all(0 <= start <= end <= max(len(text), 1) for start, end in places)
    assert [entry.budget for entry in parse(render([entry.budget for entry in found]))[0]] == [e.budget for e in found]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("latency < 1 ms", Budget("latency", 1e-3)),
        ("latency<1.5ms", Budget("latency", 1.5e-3)),
        ("latency <= 20 us", Budget("latency", 2e-5)),
        ("latency ≤ 20 μs", Budget("latency", 2e-5)),
        ("latency < 3e2 ns", Budget("latency", 3e-7)),
        ("memory < 10 MiB", Budget("memory", 10 * 2**20)),
        ("memory < .5 GiB", Budget("memory", 2**29)),
        ("accuracy > 93.5 %", Budget("accuracy", 0.935)),
        ("accuracy >= 100%", Budget("accuracy", 1.0)),
        ("energy < 15 mJ", Budget("energy", 0.015)),
        ("energy < 2uJ", Budget("energy", 2e-6)),
        ("latency < 2 ms on A100", Budget("latency", 2e-3, "nvidia-a100-sxm4-80gb")),
        ("latency < 2 ms device=my-phone", Budget("latency", 2e-3, "my-phone")),
        ('latency < 2 ms on "my phone, 2"', Budget("latency", 2e-3, "my phone, 2")),
        ('latency < 2 ms device="my phone"', Budget("latency", 2e-3, "my phone")),
        ("latency < 2 ms N=2 M=4096 on L4", Budget("latency", 2e-3, "nvidia-l4", (("M", "4096"), ("N", "2")))),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    [written], mistakes = parse(text)
    assert written.budget == budget
    assert (written.start, written.end) == (0, len(text))
    assert mistakes == ()


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", "", "a budget is missing"),
        ("latncy < 1 ms", "latncy", "unknown metric 'latncy'; write latency, memory, accuracy or energy"),
        ("latency 1 ms", "1", "'<' is missing; write latency < 1 ms"),
        ("latency", "latency", "'<' is missing"),
        ("latency > 1 ms", ">", "a budget of latency is an upper bound"),
        ("accuracy < 90 %", "<", "a budget of accuracy is a lower bound; write accuracy > 90 %"),
        ("latency <", "<", "a number is missing"),
        ("latency < fast", "fast", "'fast' is not a number"),
        ("latency < -1 ms", "-1", "'-1' is not a number"),
        ("latency < 1", "1", "the unit is missing; latency is in ns, µs, ms or s"),
        ("memory < 10 MB", "MB", "unknown unit 'MB'; memory is in B, KiB, MiB or GiB"),
        ("memory < 10MB", "MB", "unknown unit 'MB'"),
        ("accuracy > 120 %", "120 %", "at most 100 %"),
        ("latency < 0 ms", "0 ms", "must be positive"),
        ("latency < 1e99999999 s", "1e99999999 s", "must be positive and at most 1e9 s"),
        ("latency < 1 ms on", "on", "a device is missing"),
        ("latency < 1 ms on a on b", "on b", "a second device"),
        ("latency < 1 ms quickly", "quickly", "'quickly' is not valid here"),
        ("latency < 1 ms memory < 1 B", "memory", "'memory' is not valid here"),
        ("latency < 1 ms M=1 M=2", "M=2", "M is given twice"),
        ("latency < 1 ms, latency < 2 ms", "latency < 2 ms", "is given twice; keep one"),
        ("latency < 1 ms,", ",", "a budget is missing"),
        (", latency < 1 ms", ",", "a budget is missing"),
    ],
)
def test_a_mistake_says_where_it_is_and_what_to_write(text: str, place: str, what: str) -> None:
    _, mistakes = parse(text)
    assert [text[mistake.start : mistake.end] for mistake in mistakes] == [place]
    assert what in mistakes[0].message


def test_entries_next_to_a_mistake_still_apply() -> None:
    found, mistakes = parse("latency < 1 ms, memory < 10 MB, accuracy > 5 %")
    assert [entry.budget.metric for entry in found] == ["latency", "accuracy"]
    assert len(mistakes) == 1


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget("latency", 1e-3), "1 ms"),
        (Budget("latency", 1.5e-5), "15 µs"),
        (Budget("latency", 90.0), "90 s"),
        (Budget("memory", 1536.0), "1.5 KiB"),
        (Budget("memory", 1.0), "1 B"),
        (Budget("accuracy", 0.9), "90 %"),
    ],
)
def test_a_bound_is_shown_in_the_unit_that_people_use(budget: Budget, text: str) -> None:
    assert bound(budget) == text
