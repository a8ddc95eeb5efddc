"""Settings of checking: the nearest configuration, the environment before it."""

from __future__ import annotations

from pathlib import Path

from rlm_lsp.budgets import BudgetTables
from rlm_lsp.findings.finding import DEFAULT_CONFIDENCE, DEFAULT_REGRESSION
from rlm_lsp.findings.profile import Profiles

from .support import write


def test_without_a_configuration_the_defaults_are_those_of_findings(tmp_path: Path) -> None:
    profile = Profiles(BudgetTables(), {}).of(tmp_path / "a.py")
    assert profile.confidence(None) == DEFAULT_CONFIDENCE
    assert profile.confidence(0.6).least == 0.6
    assert profile.regression == DEFAULT_REGRESSION
    assert not profile.excludes(tmp_path / "a.py")


def test_the_nearest_configuration_counts_and_the_environment_before_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.rlm-lsp]\nchange-ratio = 2.0\nexclude = ['*_pb2.py']\ndevices = ['L4']\n",
            "inner/rlm-lsp.toml": "change-ratio = 3.0\n[severity]\nerror = 0.99\n[budgets]\n'*' = 'latency < 1 mss'\n",
        },
    )
    profiles = Profiles(BudgetTables(), {"RLM_LSP_CHANGE_CONFIDENCE": "0.7"})
    outer, inner = profiles.of(tmp_path / "a.py"), profiles.of(tmp_path / "inner" / "a.py")
    assert (outer.regression.ratio, inner.regression.ratio) == (2.0, 3.0)
    assert (outer.regression.probability, inner.regression.probability) == (0.7, 0.7)
    assert outer.excludes(tmp_path / "deep" / "x_pb2.py")
    assert not inner.excludes(tmp_path / "inner" / "x_pb2.py")
    assert inner.confidence(None).error == 0.99
    assert outer.asked.devices == ("L4",)
    assert profiles.problems == [], "a malformed budget is a finding"
