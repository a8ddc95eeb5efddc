"""A sample of the models with a changed card."""

from __future__ import annotations

import pytest

from . import hostile_cards

pytestmark = pytest.mark.timeout(300)


@pytest.mark.filterwarnings("ignore")  # numpy's, of numbers that a card makes too large
def test_a_model_with_a_changed_card_answers_or_is_refused_in_one_line() -> None:
    report = hostile_cards.run(24, 3)
    assert report.failures == []
    assert report.used > 0
    assert report.refused > 0
