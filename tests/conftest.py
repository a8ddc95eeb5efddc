"""Settings of hypothesis for all tests: the same examples everywhere, and no clock on shared machines."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared", deadline=None, derandomize=True)
settings.load_profile("shared")
