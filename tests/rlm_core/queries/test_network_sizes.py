"""Sizes of networks: from settings, from comments, and what they change in a query."""

from __future__ import annotations

import pytest
from rlm_core.queries.function_sizes import SizeRules
from rlm_core.queries.network_sizes import commented_sizes, network_sizes, sized_network, valid_sizes
from rlm_core.source.directives import find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText


def test_settings_give_the_sizes_of_networks_among_those_of_functions() -> None:
    rules = SizeRules({"batch": (8.0, "batch"), "image": (384.0, "*.onnx"), "orders": (10.0, "orders")})
    assert network_sizes(rules) == {"batch": 8, "image": 384}


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", "1e9", 10**9])
def test_what_is_not_a_usual_number_is_left_to_the_query(value: str | float) -> None:
    assert valid_sizes({"batch": value}) == {}


def test_comments_give_sizes() -> None:
    text = b"# rlm: sizes batch=8, image=384 rows=2\n# rlm: latency < 1 ms\n"
    assert commented_sizes(tuple(find_directives(ParsedSource(text, "python")))) == {"batch": 8, "image": 384}


def test_sizes_become_the_workload_of_a_network() -> None:
    code = CodeText("in a 1x8", "onnx", "network")
    assert sized_network(code, {}) == code
    assert sized_network(code, {"batch": 8}).workloads == ((("batch", "8"),),)
