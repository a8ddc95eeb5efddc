"""Costs of callees: an edit of a method changes the number of a function that calls it on an object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

CALLER = "def run(reader, items):\n    return reader.read_everything(items)\n"
CHEAP = "class Reader:\n    def read_everything(self, items):\n        return self.size\n"
EXPENSIVE = (
    "import re\n\n\nclass Reader:\n    def read_everything(self, items):\n        found = []\n"
    "        for first in items:\n            for second in items:\n                for third in sorted(items):\n"
    "                    found.append(re.sub(str(first), str(second), self.parser.parse(third)))\n"
    "        return sorted(found, key=lambda entry: self.parser.parse(entry))\n"
)


async def test_an_edit_of_a_method_changes_the_number_of_its_callers(
    start: Callable[..., Awaitable[Any]],
    tmp_path: Path,
    predict: Callable[[Path], list[dict[str, Any]]],
    labels_of: Callable[[list[dict[str, Any]]], dict[int, str]],
) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    caller, callee = package / "caller.py", package / "callee.py"
    # No encoder reads a callee that only its name leads to: what changes the number is its predicted cost.
    caller.write_text(CALLER)
    callee.write_text(CHEAP)
    session = await start()
    uris = [session.open(path) for path in (caller, callee)]
    before = labels_of(predict(caller))
    assert await session.labels(uris[0], 1) == before
    assert len(await session.labels(uris[1], 1)) == 1
    session.forget_refreshes()
    session.change(uris[1], EXPENSIVE)
    await session.refreshes.get()
    callee.write_text(EXPENSIVE)
    after = labels_of(predict(caller))
    assert after != before
    assert await session.labels(uris[0], 1) == after
