"""The text of a hover: nothing but what the predictions hold, in plain words."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from markdown_it import MarkdownIt
from rlm_core import Prediction
from rlm_core.inference.anchoring import anchored_prediction, measured_prediction
from rlm_core.inference.explain import Explanation, StatementEffect
from rlm_core.measurement.known import OLD_DAYS
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.kernel_sizes import Origin, UnitSizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Abstention,
    AbstentionCode,
    Anchor,
    Band,
    CalibrationSource,
    Cause,
    CauseKind,
    CostFacts,
    CostRatio,
    CpuScale,
    Growth,
    GrowthEstimate,
    MeasurementMark,
    Query,
    SizeValue,
    UnitKind,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.history.comparison import GrowthRise, WaitChange
from rlm_lsp.rendering.escaping import markdown
from rlm_lsp.rendering.explanations import explanation_text
from rlm_lsp.rendering.growth_words import rise_words
from rlm_lsp.rendering.hover import MOST_MEASURED, MOST_ROWS, head_words, hover_text, measured_words
from rlm_lsp.rendering.work_words import wait_changes

from tests.fakes import NO_NUMBER, quantiles, unpadded
from tests.rlm_core.inference.test_anchoring import cost

from .hovers import whole_hover
from .test_escaping import HOSTILE, is_inert

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
UNIT = Analyser().analyse(ParsedSource(b"def f(n):\n    return n\n", "python"))[0]
KERNEL_SOURCE = b"""
import triton
import triton.language as tl
from .hovers import whole_hover

# rlm: sizes n_elements=4096
@triton.jit
def add(x_ptr, n_elements, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""


@pytest.fixture(scope="module")
def kernel() -> AnalysedUnit:
    [found] = [unit for unit in Analyser().analyse(ParsedSource(KERNEL_SOURCE, "python")) if unit.unit.kind == "kernel"]
    return found


def change(ratio: float, metric: str = "latency", abstained: Abstention | None = None) -> CostRatio:
    if abstained is not None:
        return CostRatio("call", metric, "x86-64", "test-1", None, (), (), abstained)  # type: ignore[arg-type]
    band = Band(ratio / 1.5, ratio * 1.5, 0.8, 100, 1000, CalibrationSource(f"changes/call/{metric}"))
    return CostRatio("call", metric, "x86-64", "test-1", ratio, (band,), quantiles(ratio, 1.5))  # type: ignore[arg-type]


def test_markdown_has_a_row_for_each_metric(make_prediction: MakePrediction) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory", floor=64.0, median=0.0)
    text = whole_hover(UNIT, [make_prediction(), memory], markdown=True)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1
    assert unpadded(text).splitlines() == [
        "**`f`**: one call, as tests would call it",
        "",
        "| | median | 80 % band | 90 % band |",
        "| - | - | - | - |",
        "| latency | 85 µs | 10–160 µs | 10–320 µs |",
        "| peak memory | ≤64 B | ≤3 KiB | ≤6 KiB |",
        "",
        "About 80 % of calls should fall within the 80 % band, for inputs like those in a project's tests, often"
        " small ones.",
        "",
        "**Details**",
        "",
        "- on x86-64, runtime cpython-3.12",
        "- latency and peak memory: bands checked on 120 packages that the model had not seen (4,500 measurements of"
        " functions in all languages)",
        "- predicted by model test-1; nothing was run",
    ]


def test_plain_text_has_a_line_for_each_metric(make_prediction: MakePrediction) -> None:
    lines = whole_hover(UNIT, [make_prediction()], markdown=False).splitlines()
    assert lines[:4] == [
        "f: one call, as tests would call it",
        "",
        "latency: median 85 µs, 80 % band 10–160 µs, 90 % band 10–320 µs",
        "",
    ]
    assert not any(character in line for line in lines for character in "|`*")


def test_the_reason_to_abstain_is_shown_once_and_without_our_terms(make_prediction: MakePrediction) -> None:
    details = {"basis": "call", "language": "go", "metric": "latency"}
    reason = Abstention(AbstentionCode.TASK_NOT_TRAINED, details)
    text = whole_hover(UNIT, [make_prediction(abstained=reason)] * 2, markdown=True)
    assert (
        text.count("- latency: no prediction because the model was not trained on the latency of Go functions\n") == 1
    )
    assert "median" not in text
    assert "About 80 %" not in text


def test_a_truncated_text_is_reported_as_truncated(make_prediction: MakePrediction) -> None:
    assert "the text is long" in whole_hover(UNIT, [make_prediction(truncated=True)], markdown=True)
    assert "the text is long" not in whole_hover(UNIT, [make_prediction()], markdown=True)


@pytest.mark.parametrize("markdown", [True, False])
def test_the_table_distinguishes_devices_and_sizes(
    make_prediction: MakePrediction, kernel: AnalysedUnit, markdown: bool
) -> None:
    asked = [(device, size) for size in ("4096", "8192") for device in ("nvidia-t4", "nvidia-l4")]
    predictions = [
        make_prediction(basis="kernel", device=device, workload={"dtype": "fp16", "M": size}) for device, size in asked
    ]
    text = whole_hover(kernel, predictions, markdown=markdown)
    for device, size in asked:
        row = (
            f"| latency | {device} | M {size} | 85 µs |" if markdown else f"latency on {device} at M {size}: median 85"
        )
        assert row in unpadded(text)
    assert ("- at dtype fp16\n" if markdown else "\nat dtype fp16\n") in text
    assert "sizes from the comment at the kernel" in text
    assert "latency on nvidia-t4 and latency on nvidia-l4: bands checked on 120 kernels" in text


def test_a_device_that_is_known_by_its_data_sheet_says_so(
    make_prediction: MakePrediction, kernel: AnalysedUnit
) -> None:
    learned = make_prediction(basis="kernel", device="nvidia-h100-sxm")
    source = CalibrationSource("kernel/triton/latency", by_data_sheet=True)
    bands = tuple(replace(band, source=source, groups=21) for band in learned.bands)
    by_sheet = replace(learned, device="nvidia-h200", bands=bands)
    text = whole_hover(kernel, [learned, by_sheet], markdown=True)
    assert "latency on nvidia-h100-sxm: bands checked on 120 kernels" in text
    reason = "known by its data sheet only, bands checked on 21 devices, each left out of training in turn"
    assert f"latency on nvidia-h200: {reason}" in text


def test_a_table_does_not_grow_without_end(make_prediction: MakePrediction, kernel: AnalysedUnit) -> None:
    predictions = [make_prediction(basis="kernel", workload={"M": str(size)}) for size in range(MOST_ROWS + 7)]
    text = whole_hover(kernel, predictions, markdown=True)
    assert unpadded(text).count("| latency |") == MOST_ROWS
    assert "- 7 more are not shown" in text


def test_the_calibration_of_a_band_is_put_in_words(make_prediction: MakePrediction) -> None:
    def words(basis: str, task: str = "", **more: Any) -> str:
        band = Band(1e-5, 1e-4, 0.8, 40, 400, CalibrationSource(task, **more))
        return whole_hover(UNIT, [make_prediction(basis=basis, bands=(band,))], markdown=False)

    assert "40 packages that the model had not seen (400 measurements of Python functions)" in words(
        "call", "call/python/latency/x86-64"
    )
    assert "40 problems that the model had not seen (400 measurements of programs in all languages)" in words(
        "program", "program/latency"
    )
    assert "(400 measurements of programs in all languages, all metrics together)" in words("program", "program")
    assert "40 kernels that the model had not seen (400 measurements of kernels on nvidia-t4)" in words(
        "kernel", "kernel/triton/latency/nvidia-t4"
    )
    assert "40 architectures that the model had not seen (400 measurements of networks on pixel-3)" in words(
        "network", "network/onnx/latency@pixel-3/1"
    )
    assert "latency: bands from 400 measurements of 40 texts on build-box, each left out in turn" in words(
        "call", adapted_device="build-box"
    )
    assert "\nlatency: scaled by 0.5 to this CPU (score of 2026-01-01)\n" in words(
        "call", "call/python/latency", cpu_scale=CpuScale(0.5, "2026-01-01")
    )


def test_the_share_of_comparable_units_comes_with_the_floor(make_prediction: MakePrediction) -> None:
    prediction = make_prediction()
    text = whole_hover(UNIT, [prediction], markdown=False, shares=[(prediction, 0.634)])
    assert "slower than 63 % of comparable Python functions (those above 50 ns)\n" in text
    least = whole_hover(UNIT, [prediction], markdown=False, shares=[(prediction, 0.002)])
    assert "slower than under 1 % of comparable" in least


def test_a_change_against_head_comes_first_and_that_there_is_none_last(make_prediction: MakePrediction) -> None:
    text = whole_hover(UNIT, [make_prediction()], markdown=True, against_head="new")
    assert text.index("- against HEAD: new\n") < text.index("**Details**")
    text = whole_hover(UNIT, [make_prediction()], markdown=True, against_head="unchanged")
    assert text.index("- against HEAD: unchanged\n") > text.index("**Details**")
    assert "HEAD" not in whole_hover(UNIT, [make_prediction()], markdown=True)


def test_the_summary_has_the_change_the_budgets_the_main_cause_and_the_growth(make_prediction: MakePrediction) -> None:
    waits = (Wait(WaitKind.NETWORK, 1, "get"), Wait(WaitKind.USER, 1, "input"))
    unit = replace(UNIT, code=replace(UNIT.code, work=WorkFacts(waits=waits)))
    its = make_prediction(quantiles=quantiles(1e-3), growth=GrowthEstimate("n^2", 0.85, ("n",)))
    memory = make_prediction(metric="memory", abstained=NO_NUMBER)
    budgets = [(Budget("latency", 2e-3), its), (Budget("latency", 1.0), its), (Budget("memory", 1.0), memory)]
    text = hover_text(unit, [its], markdown=True, against_head="latency about 2×", budgets=budgets)
    assert text.summary.splitlines()[-7:] == [
        "- against HEAD: latency about 2×",
        "- budget 2 ms: 10 % likely to exceed",
        "- budget 1 s: under 1 % likely to exceed",
        "- budget 1 B: not checked, since there is no prediction",
        "- line 2 waits for the network (`get`)",
        "- latency grows about as n^2 in `n` (85 % probability)",
        "- the predicted latency does not include the wait for the network and for the user (line 2)",
    ]
    assert text.details.splitlines()[0] == "- line 2 waits for the user (`input`)"


def test_a_budget_of_accuracy_is_a_lower_bound(make_prediction: MakePrediction) -> None:
    answer = make_prediction(basis="network", metric="accuracy", quantiles=tuple(0.8 + n / 100 for n in range(17)))
    text = hover_text(UNIT, [answer], markdown=True, budgets=[(Budget("accuracy", 0.88), answer)])
    assert "- budget 88 %: 50 % likely to fall below" in text.summary


def test_a_change_is_shown_with_its_band_for_each_metric() -> None:
    assert head_words("new", ()) == "new"
    assert head_words("same", ()) == "unchanged"
    assert (
        head_words("changed", [change(2.13), change(0.48, "memory")])
        == "latency about 2.1× (80 % band 1.4–3.2×), peak memory about 0.48× (80 % band 0.32–0.72×)"
    )


def test_a_text_that_is_the_same_to_the_model_costs_the_same() -> None:
    neutral = change(1.0)
    same = tuple(replace(band, low=1.0, high=1.0) for band in neutral.bands)
    assert head_words("changed", [replace(neutral, bands=same)]) == "latency unchanged"
    assert head_words("changed", [neutral]) == "latency about 1× (80 % band 0.67–1.5×)"
    at_sizes = replace(neutral, is_decided=False, sizes=(SizeValue("users", 2e4, "comment"),))
    assert head_words("changed", [at_sizes]) == "latency: cannot tell which costs more at users=20k"


def test_growth_and_waits_follow_the_ratios() -> None:
    rise = GrowthRise("latency", GrowthEstimate("n", 1.0), GrowthEstimate("n^2", 1.0, ("values",)))
    waits = (Wait(WaitKind.NETWORK, 1, "get"), Wait(WaitKind.USER, 1, "input", None, 0.5), Wait(WaitKind.TIME, 0, "s"))
    others = [rise_words(rise), *wait_changes(UNIT.unit, WaitChange(waits, 0, (0.0, 1.0)))]
    assert others == [
        "growth of latency from n to n^2 in `values`",
        "now may not end (line 1)",
        "now waits for the network (line 2)",
        "now may wait for the user (line 2)",
        "now waits for an unknown time (line 1)",
        "now waits 1 s",
    ]
    assert head_words("changed", [change(2.13)], others[:1]) == (
        "growth of latency from n to n^2 in `values`, latency about 2.1× (80 % band 1.4–3.2×)"
    )
    assert head_words("changed", [], others[:1]) == others[0]


def test_a_change_that_is_not_known_says_why() -> None:
    reason = Abstention(AbstentionCode.RATIO_NOT_CALIBRATED, {"basis": "kernel", "metric": "latency"})
    assert (
        head_words("changed", [change(1, abstained=reason)])
        == "changed, but the ratio cannot be predicted because the model was not calibrated on changes in the"
        " latency of kernels"
    )
    assert head_words("changed", ()) == "changed, but the ratio cannot be predicted"


def test_names_from_outside_are_shown_as_they_are(make_prediction: MakePrediction) -> None:
    device = "x](http://a) ![p](https://evil.invalid/p.png) | `b` \x1b[2J"
    missing = Abstention(
        AbstentionCode.DEVICE_NOT_TRAINED, {"device": device, "known": device, "others": "0", "basis": "kernel"}
    )
    unit = replace(UNIT, unit=replace(UNIT.unit, qualname="a` ![p](https://evil.invalid/p.png)"))
    predictions = [
        replace(make_prediction(), device=device, workload={"M": device}, model=device),
        replace(make_prediction(), device="other", abstained=missing, bands=()),
    ]
    text = whole_hover(unit, predictions, markdown=True)
    assert text.startswith("**`` a` ![p](https://evil.invalid/p.png) ``**")
    page = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "<a " not in page
    assert "<img " not in page
    assert "\x1b" not in text
    assert "\x1b" not in whole_hover(unit, predictions, markdown=False)


@pytest.mark.parametrize("text", [*HOSTILE, *(f"{text} {HOSTILE[0]}" for text in ("`", "```", "\\\\", "|", "\\|"))])
def test_no_field_of_a_hover_is_more_than_text(
    make_prediction: MakePrediction, kernel: AnalysedUnit, text: str
) -> None:
    names = "basis language metric judge device known workload date distance limit example groups needed problem size"
    more = "url error others sizes unit call batch least most operators share dataset side usual gmacs"
    details = dict.fromkeys([*names.split(), *more.split()], text)
    missing = [Abstention(code, details, text) for code in AbstentionCode]
    source = CalibrationSource(f"kernel/{text}/{text}/{text}@{text}", False, text, CpuScale(2.0, text))
    bands = tuple(replace(band, source=source) for band in make_prediction().bands)
    costs = CostFacts(
        causes=tuple(Cause(kind, 1, text, 1e9, 8.0) for kind in CauseKind), growth=(Growth(text, 2.0, 1.0, 2.0),)
    )
    work = WorkFacts(costs, costs, tuple(Wait(kind, 1, text) for kind in WaitKind))
    its = replace(cost(), device=text, runtime=text, date=text, workload=((text, text), ("input", text)))
    anchors = tuple(Anchor(replace(its, kind=kind), UNIT.code) for kind in ("function", "program", "kernel"))
    first = replace(
        make_prediction(), basis="kernel", device=text, workload={text: text}, model=text, bands=bands, truncated=True
    )
    predictions = [
        first,
        replace(first, metric="memory", device=f"{text} 2", growth=GrowthEstimate("mn", 0.9, (text, text))),
        measured_prediction(replace(first, workload={}), its),
        *(replace(first, abstained=reason, bands=(), median=None) for reason in missing),
    ]
    rise = GrowthRise("latency", GrowthEstimate("n", 1.0), GrowthEstimate("n^2", 1.0, (text,)))
    clauses = [rise_words(rise), *wait_changes(UNIT.unit, WaitChange(work.waits, 0, (0.0, 1.0)))]
    changes = [([change(2.0)], clauses), *(([change(1, abstained=reason)], []) for reason in missing)]
    kinds: tuple[UnitKind, ...] = ("kernel", "module")
    variants = itertools.product(get_args(Origin), kinds)
    for (origin, kind), (ratios, others) in zip(variants, itertools.cycle(changes)):
        unit = AnalysedUnit(
            replace(kernel.unit, qualname=text, kind=kind),
            replace(kernel.code, work=work, measured=anchors),
            UnitSizes(({text: text},), origin, 1, text),
        )
        hover = whole_hover(
            unit,
            predictions,
            markdown=True,
            against_head=head_words("changed", ratios, others, quote=markdown),
            shares=[(first, 0.5)],
            budgets=[(Budget("latency", 1e-3, text, ((text, text),)), answer) for answer in predictions[:4]],
        )
        assert is_inert(hover), hover
    explained = explanation_text(
        unit, Query("latency"), Explanation(first, (StatementEffect(1, 1, text, 2.0),)), {1: 1}
    )
    assert is_inert(explained), explained
    explained = explanation_text(unit, Query("latency"), Explanation(predictions[-1], ()), {})
    assert is_inert(explained), explained


def with_measured(*anchors: Anchor) -> AnalysedUnit:
    return replace(UNIT, code=replace(UNIT.code, measured=anchors))


def test_a_measured_cost_is_marked_and_the_prediction_stays_visible(make_prediction: MakePrediction) -> None:
    its = cost()
    answers = [measured_prediction(make_prediction(), its), make_prediction(metric="memory")]
    text = unpadded(whole_hover(with_measured(Anchor(its)), answers, markdown=True))
    assert "| | median | 80 % band | 90 % band | predicted |" in text
    assert "| latency | ✓ 2 µs | 1–8 µs | | 85 µs (10–160 µs) |" in text
    assert "measured on a processor, cpython-3.12, 2026-11-01: latency (40 calls in 8 tests, 1–8 µs)" in text
    assert "predicted by model" in text
    for tool, origin in (
        ("cProfile", "mean of 40 calls under cProfile, whose cost is subtracted"),
        ("CodSpeed", "40 calls in 8 benchmarks of CodSpeed"),
    ):
        other = replace(its, tool=tool, runtime="")
        shown = whole_hover(
            with_measured(Anchor(other)), [measured_prediction(make_prediction(), other)], markdown=True
        )
        assert f"measured on a processor, 2026-11-01: latency ({origin}, 1–8 µs)" in unpadded(shown)
    for words in ("stale", "times", "before the code changed"):
        assert words not in text
    alone = whole_hover(with_measured(Anchor(its)), answers[:1], markdown=False)
    assert "nothing was run" not in alone
    assert "bands checked on" not in alone


def test_a_cost_that_is_carried_over_names_the_measurement_and_the_ratio(make_prediction: MakePrediction) -> None:
    its = cost()
    answer = anchored_prediction(UNIT.code, make_prediction(), its, change(2.0))
    text = unpadded(whole_hover(with_measured(Anchor(its, UNIT.code)), [answer], markdown=True))
    assert "| latency | ≈ 4 µs | " in text
    assert "latency: 2 µs measured, times 2× (80 % band 1.3–3×), the predicted ratio" in text
    assert "measured before the code changed, on a processor, cpython-3.12, 2026-11-01: latency 2 µs (" in text
    assert "predicted by model" in text


def test_a_measurement_that_cannot_be_carried_over_is_stale(make_prediction: MakePrediction) -> None:
    unit = with_measured(Anchor(replace(cost(), kind="generator"), UNIT.code))
    text = whole_hover(unit, [make_prediction()], markdown=True)
    assert "latency 2 µs (stale) (40 resumes in 8 tests" in text
    assert "- stale: the code has changed since it was measured\n" in text


def test_the_doubts_about_a_measurement_are_said(make_prediction: MakePrediction) -> None:
    marks = (MeasurementMark.OTHER_MACHINE, MeasurementMark.OTHER_PYTHON, MeasurementMark.OLD)
    doubtful = replace(cost(), marks=marks, committed=True)
    text = whole_hover(
        with_measured(Anchor(doubtful)), [measured_prediction(make_prediction(), doubtful)], markdown=False
    )
    assert "✓? 2 µs" in text
    assert "; committed with the project: " in text
    assert "latency: measured on another processor and not scaled to this one" in text
    assert "latency: measured with another Python than that of the project" in text
    assert f"latency: measured more than {OLD_DAYS} days ago" in text
    scaled = replace(cost(), cpu_ratio=0.25)
    text = whole_hover(with_measured(Anchor(scaled)), [measured_prediction(make_prediction(), scaled)], markdown=False)
    assert "latency: scaled by 0.25 from the processor that it was measured on to this one" in text


def test_what_was_measured_is_shown_where_the_model_abstains(make_prediction: MakePrediction) -> None:
    its = cost()
    answer = measured_prediction(make_prediction(abstained=NO_NUMBER), its)
    text = unpadded(whole_hover(with_measured(Anchor(its)), [answer], markdown=True))
    assert "| latency | ✓ 2 µs | 1–8 µs |" in text
    assert "no prediction because" not in text


def test_of_many_sizes_a_hover_shows_some_and_says_how_many_there_are() -> None:
    kernels = [
        Anchor(replace(cost(), kind="kernel", device="h100", workload=(("n", str(n)),)))
        for n in range(1, MOST_MEASURED + 4)
    ]
    lines = list(measured_words(kernels))
    assert lines[0] == "measured on h100 at n 1, cpython-3.12, 2026-11-01: latency 2 µs (40 runs, 1–8 µs)"
    assert len(lines) == MOST_MEASURED + 1
    assert lines[-1] == "3 more measurements: rlm-lsp measure list --functions"
