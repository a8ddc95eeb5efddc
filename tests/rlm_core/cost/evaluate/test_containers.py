"""Containers: the sizes of displays and slices, and what items are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.domain.values import Value

from ..counting import count, ran
from ..evaluating import evaluated


@given(st.lists(st.integers(0, 9), max_size=8))
def test_displays_have_their_size(items: list[int]) -> None:
    for text, size in ((f"{items}", len(items)), (f"[*{items}, *{items}]", 2 * len(items))):
        value = evaluated(text)
        assert value.kind == "list"
        assert value.size is not None
        assert value.size.exact == size


@settings(max_examples=100)
@given(
    st.integers(0, 60), st.one_of(st.none(), st.integers(-70, 70)), st.one_of(st.none(), st.integers(-70, 70)),
    st.one_of(st.none(), st.integers(1, 7)),
)  # fmt: skip
def test_slices_have_the_size_that_python_gives_them(
    whole: int, start: int | None, stop: int | None, step: int | None
) -> None:
    bounds = ":".join("" if part is None else str(part) for part in (start, stop, step))
    true = len(list(range(whole))[start:stop:step])
    value = evaluated(f"items[{bounds}]", items=Value("list", size=constant(whole)))
    assert value.size is not None
    assert value.size.exact == true


def test_a_dictionary_knows_the_values_of_its_keys() -> None:
    assert evaluated("{'a': 1, 'b': 2}['b']").constant == 2
    assert not evaluated("{'a': 1, 'b': 2}['c']").known
    assert not evaluated("{True: 1, 2: 3}[1.0]").known


@pytest.mark.parametrize("names", ["*rest, last", "first, *rest", "first, *rest, last", "*rest,"])
def test_a_starred_name_gets_what_the_others_leave(names: str) -> None:
    loops = "".join(
        f"    for _ in range({name}):\n        time.sleep(1)\n" for name in ("first", "last") if name in names
    )
    text = f"def f():\n    {names} = [2, 3, 5, 7]\n    for _ in rest:\n        time.sleep(1)\n{loops}"
    known = count(text)
    assert known.least == known.likely == known.most == ran(text)
