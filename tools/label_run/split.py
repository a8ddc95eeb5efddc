"""Which packages are kept for examination: a fixed fifth, by a hash of the name."""

from __future__ import annotations

import hashlib
import re

PARTS = 5


def is_unopened(name: str) -> bool:
    """Return whether the results of a package are for examination alone, and not for development."""
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return int.from_bytes(hashlib.sha256(normal.encode()).digest()[:8]) % PARTS == 0
