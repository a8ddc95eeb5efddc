"""Settings: defaults, values, and one line for each thing that was not understood."""

from __future__ import annotations

import pytest
from rlm_lsp.settings import Settings

pytestmark = pytest.mark.timeout(30)


def test_no_options_mean_defaults() -> None:
    assert Settings.from_options(None) == (Settings(), [])
    assert Settings.from_options({}) == (Settings(), [])


def test_known_options_are_taken() -> None:
    options: dict[str, object] = {
        "metrics": ["memory"],
        "languages": ["python"],
        "model": "m",
        "threads": 2,
        "debounceMs": 0,
    }
    options["devices"] = ["a100", "l40s", "a100"]
    settings, problems = Settings.from_options(options)
    assert settings == Settings(("memory",), ("python",), ("a100", "l40s"), "m", 2, 0)
    assert problems == []


def test_null_keeps_the_default() -> None:
    assert Settings.from_options({"model": None}) == (Settings(), [])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"colour": 1}, "unknown setting `colour`"),
        ({"threads": -1}, "`threads` must be an integer from 0"),
        ({"threads": True}, "`threads` must be an integer from 0"),
        ({"metrics": ["speed"]}, "`metrics` must be a list of latency"),
        ({"metrics": "latency"}, "`metrics` must be a list of latency"),
        ({"languages": [["python"]]}, "`languages` must be a list"),
        ({"devices": "a100"}, "`devices` must be a list of names"),
        ({"devices": ["a100", ""]}, "`devices` must be a list of names"),
        ({"devices": [1]}, "`devices` must be a list of names"),
        ({"model": 3}, "`model` must be a non-empty string"),
        ([1], "must be an object"),
    ],
)
def test_what_is_not_understood_is_named_and_its_default_holds(options: object, part: str) -> None:
    settings, problems = Settings.from_options(options)
    assert settings == Settings()
    assert len(problems) == 1
    assert part in problems[0]
