"""Settings of hypothesis for all tests: the same examples everywhere, and no clock on shared machines."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

settings.register_profile("shared", deadline=None, derandomize=True)
settings.load_profile("shared")

# What the user of this machine has measured must not reach a test, nor a test the user's folders.
_home = tempfile.TemporaryDirectory(prefix="rlm-lsp-tests-")
os.environ |= {f"XDG_{name}_HOME": f"{_home.name}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA", "STATE")}
# Notices are for people.
os.environ["CI"] = "true"
