"""Findings: exceeded budgets and regressions, judged in one place for the editor and ``rlm-lsp check``."""
