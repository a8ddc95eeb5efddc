"""Sizes: the search for a size by cost, rounding, and source text that means the size wherever it is put."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tools.counterfactual.literal.sizes import FORMS, embedded, literal, rounded, size_for

SIZES = st.integers(1, 10**12)


@given(SIZES, st.sampled_from(FORMS))
def test_the_source_text_of_a_size_means_it(size: int, form: str) -> None:
    assert eval(literal(size, form)) == size


@given(
    st.integers(1, 10**6), st.sampled_from((0, 1, 2, -2, -10)), st.sampled_from(FORMS),
    st.sampled_from(("7 % (N + 1)", "N // 2", "N ** 2", "5 - N", "(N)", "range(3, N)[-1]", "3 * N - 1", "-N")),
)  # fmt: skip
def test_a_size_means_the_same_inside_other_code(size: int, digits: int, form: str, code: str) -> None:
    size = rounded(size, digits) + 5
    before, after = code.split("N")
    assert eval(before + embedded(literal(size, form), before, after) + after) == eval(code, {"N": size})


@given(SIZES, st.sampled_from((0, 1, 2, 3, -2, -10)))
def test_rounding_keeps_the_magnitude(size: int, digits: int) -> None:
    assert size / 10 < rounded(size, digits) <= size


@given(st.floats(1, 1e12), st.integers(1, 100), st.integers(101, 10**9))
def test_the_size_for_a_cost_is_the_largest_that_keeps_it(wanted: float, low: int, high: int) -> None:
    def cost(size: int) -> float:
        return 3.0 * size * size

    size = size_for(cost, wanted, low, high)
    assert low <= size <= high
    assert cost(size) <= wanted or size == low
    assert cost(size + 1) > wanted or size == high
