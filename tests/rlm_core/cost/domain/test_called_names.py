"""The calls that a text is written with, by name and line."""

from __future__ import annotations

from rlm_core.cost.domain.called_names import last_part, written_calls

TEXT = """    def f(self, items):
        first = self.load(
            items.get("a"),
        )
        return first.fetch().read()
"""


def test_calls_are_known_by_their_last_name_and_by_line() -> None:
    calls = written_calls(TEXT)
    assert calls is not None
    assert set(calls.lines) == {"load", "get", "fetch", "read"}
    assert "self.load()" in calls
    assert "session.get" in calls
    assert "first" not in calls
    assert calls.across(2) == {"load", "get"}
    assert calls.across(4) == {"fetch", "read"}
    assert calls.across(0) == frozenset()


def test_a_text_that_cannot_be_read_has_none() -> None:
    assert written_calls("(" * 100) is None
    assert last_part("requests.get()") == last_part("get") == "get"
