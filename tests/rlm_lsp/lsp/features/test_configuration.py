"""Which files are configuration files."""

from __future__ import annotations

from rlm_lsp.lsp.features.configuration import is_configuration


def test_configuration_files_are_known_by_name() -> None:
    assert is_configuration("file:///a/pyproject.toml")
    assert is_configuration("file:///a/rlm-lsp.toml")
    assert not is_configuration("file:///a/pyproject.toml.py")
