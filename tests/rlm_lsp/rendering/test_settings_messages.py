"""The sentence about invalid settings says what is wrong and where, and how many there are."""

from __future__ import annotations

from pathlib import Path

from rlm_lsp.rendering.settings_messages import invalid_settings
from rlm_lsp.settings.resolve import SettingsProblem


def test_one_problem_is_described_with_its_place() -> None:
    problem = SettingsProblem(str(Path("/shop/rlm-lsp.toml")), "setting `threads` must be an integer", "threads")
    text = 'rlm-lsp ignores a setting that is not valid, in rlm-lsp.toml: setting "threads" must be an integer.'
    assert invalid_settings([problem]) == text


def test_several_problems_are_counted_and_the_first_is_described() -> None:
    client, variable = (
        SettingsProblem(place, f"setting `{place[0]}` is wrong") for place in ("workspace/configuration", "environment")
    )
    text = 'rlm-lsp ignores 2 settings that are not valid. The first, in the {}: setting "{}" is wrong.'
    assert invalid_settings([client, variable]) == text.format("editor's settings", "w")
    assert invalid_settings([variable, client]) == text.format("environment", "e")


def test_a_question_is_not_followed_by_a_full_stop() -> None:
    problem = SettingsProblem("environment", "unknown setting `hintz`; did you mean `hints`?")
    text = 'rlm-lsp ignores a setting that is not valid, in the environment: unknown setting "hintz"; '
    text += 'did you mean "hints"?'
    assert invalid_settings([problem]) == text


def test_a_workspace_cannot_offer_a_command_as_a_link() -> None:
    problem = SettingsProblem("rlm-lsp.toml", "unknown setting `[Fix](command:workbench.action.quit)`", "x")
    assert "](" not in invalid_settings([problem])
