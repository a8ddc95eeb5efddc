"""Templates are read with their variants, costs and ranges, and there are enough of them."""

from __future__ import annotations

import math

from tools.counterfactual.literal.template import parse_templates
from tools.counterfactual.literal.templates import TEMPLATES

TEXT = """
== first | 10*n | 8*n | 2-10**6
def $f($x):
    return $x
---
$total = 0
for $i in range(N):
    $total += $f($i)
=> $total
~~ short | 60 | 0
=> N

== second | 2**n | 64
=> sum(range(N))
"""


def test_a_text_of_templates_is_read_with_variants_costs_and_ranges() -> None:
    first, second = parse_templates(TEXT)
    assert (first.name, first.low, first.high) == ("first", 2, 10**6)
    assert [variant.name for variant in first.variants] == ["first", "short"]
    long, short = first.variants
    assert long.definitions == "def $f($x):\n    return $x"
    assert long.statements == ("$total = 0", "for $i in range(N):", "    $total += $f($i)")
    assert (long.result, short.result, short.definitions, short.statements) == ("$total", "N", "", ())
    assert math.isclose(long.seconds(1000), 1e-5)
    assert long.memory(1000) == 8000
    assert (second.name, second.low) == ("second", 3)


def test_a_cost_beyond_floats_is_infinite() -> None:
    _, second = parse_templates(TEXT)
    assert second.variants[0].seconds(10_000) == math.inf


def test_there_are_enough_templates_and_their_costs_never_fall() -> None:
    assert len(TEMPLATES) >= 150
    for template in TEMPLATES.values():
        assert template.low < template.high
        for variant in template.variants:
            for cost in (variant.seconds, variant.memory):
                middle = min(template.high, template.low * 20)
                assert 0 <= cost(template.low) <= cost(middle) <= cost(template.high)
