"""Settings of hypothesis for all tests: the same examples everywhere, and no clock on shared machines."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

settings.register_profile("shared", deadline=None, derandomize=True)
settings.load_profile("shared")

# What the user of this machine has measured must not reach a test, nor a test the user's folders.
_home = tempfile.TemporaryDirectory(prefix="rlm-lsp-tests-")
os.environ |= {"XDG_CACHE_HOME": f"{_home.name}/cache", "XDG_CONFIG_HOME": f"{_home.name}/config"}
