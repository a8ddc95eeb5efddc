"""Sizes of a network's inputs that a question names: the batch, and what the file of the network leaves open.

``[tool.rlm-lsp.sizes]``, a comment next to a call that names the file, ``--workload`` and the page of a network in VS
Code give them. The batch is part of the query; the others are set before the graph is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlm_core.source.directives import Directive
from rlm_core.source.onnx_graph.open_sizes import USUAL
from rlm_core.types import CodeText

from .function_sizes import SizeRules
from .size_comments import KEYWORD

BATCH = "batch"
NETWORK_SIZES = (BATCH, *USUAL)
_MOST = 1_000_000


def network_sizes(rules: SizeRules) -> dict[str, int]:
    """The sizes of networks in the settings about a file."""
    return valid_sizes({name: value for name, (value, _) in rules.by_name.items()})


def valid_sizes(given: Mapping[str, float | str]) -> dict[str, int]:
    """The sizes of networks among values by name; what is not a positive whole number is left to the query."""
    found: dict[str, int] = {}
    for name, value in given.items():
        number = str(value).removesuffix(".0")
        if name in NETWORK_SIZES and number.isdecimal() and 0 < int(number) <= _MOST:
            found[name] = int(number)
    return found


def commented_sizes(directives: Sequence[Directive]) -> dict[str, int]:
    """The sizes of a network in comments such as ``# rlm: sizes batch=8 image=384``; mistakes are passed over."""
    found: dict[str, int] = {}
    for directive in directives:
        keyword, _, text = directive.text.partition(" ")
        pairs = (word.partition("=") for word in text.replace(",", " ").split())
        if keyword == KEYWORD:
            found |= valid_sizes({name: value for name, _, value in pairs})
    return found


def sized_network(code: CodeText, sizes: Mapping[str, int]) -> CodeText:
    """The text of a network that is asked about at sizes."""
    workload = tuple((name, str(value)) for name, value in sizes.items())
    return replace(code, workloads=(workload,)) if sizes else code
