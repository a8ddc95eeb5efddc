"""Programs of every template: they parse, run at their smallest size, and their measured cost moves with the size."""

from __future__ import annotations

import ast
import math
import time
import tracemalloc
from dataclasses import replace

import pytest

from tools.counterfactual.literal.generator import specify
from tools.counterfactual.literal.rendering import _MODULES, PLACEMENTS, Module, Specification, render
from tools.counterfactual.literal.sizes import FORMS, size_for
from tools.counterfactual.literal.templates import TEMPLATES
from tools.counterfactual.literal.worker import Call
from tools.counterfactual.vocabulary import seeded

pytestmark = pytest.mark.extras  # some templates use numpy
_SAMPLED = 3  # every third variant is measured: the bounds are shares of all, and a template alone does not move them


def plain(template: str, variant: int, size: int) -> Specification:
    return Specification(TEMPLATES[template], variant, size, f"plain:{template}")


def call(module: Module) -> Call:
    return Call({"module": module.text, "owner": module.owner, "name": module.name, "arguments": module.arguments})


def seconds(module: Module) -> float:
    """CPU seconds of a call, the least of two."""
    run = call(module)
    times = []
    for _ in range(2):
        run.clear()
        start = time.thread_time()
        run.call()
        times.append(time.thread_time() - start)
    return min(times)


def test_every_variant_runs_at_its_smallest_size_in_any_style() -> None:
    wrong = []
    for name, template in TEMPLATES.items():
        for variant in range(len(template.variants)):
            for number in range(3):
                style = specify(name, f"style:{number}", seeded(name, variant, number))
                spec = replace(style, variant=variant, size=template.low, wrap=min(style.wrap, 1))
                module = render(spec)
                try:
                    ast.parse(module.text)
                    call(module).call()
                except Exception as error:  # whatever a program of a template raises
                    wrong.append((name, variant, number, repr(error)))
                assert not set("«»¦") & set(module.text), module.text
            text = render(plain(name, variant, template.low)).text
            assert "$" not in text or "regex" in name, text
    assert wrong == []


def law_cases() -> list[tuple[str, int]]:
    """Variants whose predicted cost grows at least a thousandfold within what a test can run."""
    return [
        (template.name, at)
        for template in TEMPLATES.values()
        for at, variant in enumerate(template.variants)
        if variant.seconds(template.low) * 100 < min(variant.seconds(template.high), 3e-3)
    ]


def test_measured_time_moves_with_the_size() -> None:
    wrong = []
    cases = law_cases()[::_SAMPLED]
    for template, at in cases:
        variant, known = TEMPLATES[template].variants[at], TEMPLATES[template]
        small = size_for(variant.seconds, 1e-4, known.low, known.high)
        large = size_for(variant.seconds, 3e-3, known.low, known.high)
        if variant.seconds(large) < 4 * variant.seconds(small):
            continue
        ratio = seconds(render(plain(template, at, large))) / seconds(render(plain(template, at, small)))
        if ratio < (variant.seconds(large) / variant.seconds(small)) ** 0.4:
            wrong.append((template, variant.name, small, large, ratio))
    assert len(cases) > 250 / _SAMPLED
    # Pages of memory that nothing touches, and what a cache of the processor holds, bend some laws at these sizes.
    assert len(wrong) <= 0.04 * len(cases), wrong


def test_traced_memory_moves_with_the_size() -> None:
    wrong = []
    checked = 0
    for template in [*TEMPLATES.values()][::_SAMPLED]:
        variant = template.variants[0]
        small, large = (size_for(variant.memory, wanted, template.low, template.high) for wanted in (2e4, 4e5))
        if variant.memory(large) < 8 * variant.memory(small) or variant.seconds(large) > 0.05:
            continue
        checked += 1
        peaks = []
        for size in (small, large):
            run = call(render(plain(template.name, 0, size)))
            run.call()
            tracemalloc.start()
            result = run.call()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            del result
        if peaks[1] < 3 * peaks[0]:
            wrong.append((template.name, small, large, peaks))
    assert checked > 100 / _SAMPLED
    assert len(wrong) <= 0.06 * checked, wrong


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("form", FORMS)
def test_the_size_means_the_same_wherever_it_is_written(placement: str, form: str) -> None:
    for depth in (0, 2) if placement != "class" else (0,):
        spec = Specification(
            TEMPLATES["big-comparison"], 0, 3000, "where", placement, form, depth=depth, method=placement == "class"
        )
        other = replace(spec, template=TEMPLATES["pass-loop"])
        for one in (spec, other):
            module = render(one)
            call(module).call()
        tree = ast.parse(render(replace(spec, template=TEMPLATES["list-of-range"], variant=1)).text)
        assert any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
    lists = render(replace(spec, template=TEMPLATES["list-of-range"]))
    assert len(call(lists).call()) == 3000


def test_helpers_are_as_deep_as_requested() -> None:
    for depth in range(5):
        text = render(Specification(TEMPLATES["sum-range"], 0, 10, "deep", "argument", depth=depth)).text
        assert text.count("def ") == depth + 1


def test_names_do_not_hide_builtins_or_modules() -> None:
    hidden = {*_MODULES, "np", "sum", "len", "list", "range", "max", "min", "sorted", "str", "int", "set", "dict"}
    for template in sorted(TEMPLATES):
        tree = ast.parse(render(Specification(TEMPLATES[template], 0, 9, f"names:{template}", names=1)).text)
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        assert not hidden & {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


def test_the_wrapped_work_costs_more() -> None:
    base = plain("list-comprehension", 0, 2000)
    ratio = seconds(render(replace(base, wrap=20))) / seconds(render(base))
    assert 5 < ratio < 60
    assert math.isclose(replace(base, wrap=20).seconds(2000), 20 * base.seconds(2000))
