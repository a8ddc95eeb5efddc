"""Exponential growth: searches and enumerations of many forms have it, walks that look like them do not."""

from __future__ import annotations

import pytest

from . import exponential_functions, polynomial_functions
from .claims import exponential

_HEADER = "import itertools\nimport math\nimport re\nfrom itertools import combinations, product\n\n\n"


def _functions(texts: str) -> list[str]:
    return [text.strip() + "\n" for text in texts.split("\n\n\n")]


@pytest.mark.parametrize(
    "text", _functions(exponential_functions.TEXTS), ids=lambda text: text.split("(")[0].split()[-1]
)
def test_searches_and_enumerations_grow_exponentially(text: str) -> None:
    assert exponential(_HEADER + text)


@pytest.mark.parametrize(
    "text", _functions(polynomial_functions.TEXTS), ids=lambda text: text.split("(")[0].split()[-1]
)
def test_walks_do_not_grow_exponentially(text: str) -> None:
    assert not exponential(_HEADER + text)
