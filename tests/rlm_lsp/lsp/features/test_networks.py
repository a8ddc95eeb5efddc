"""Which networks of a folder no other one beats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlm_lsp.lsp.features.networks import front

POINTS = st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0, 4.0]), st.sampled_from([0.1, 0.5, 0.9])), max_size=12)


@given(POINTS)
def test_the_front_is_what_no_other_point_beats(points: list[tuple[float, float]]) -> None:
    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one != other and one[0] <= other[0] and one[1] >= other[1]

    assert front(points) == {
        number for number, point in enumerate(points) if not any(beats(other, point) for other in points)
    }
