"""A person at an editor, without pauses: a sample; and memory over edits of the same texts."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tests.bench.lsp_stdio import session

from .soak import slope, soak

pytestmark = pytest.mark.timeout(300)
_WARM, _EDITS = 4_000, 8_000
_BYTES_PER_EDIT = 256  # the text of an edit that is kept takes more


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_a_person_sees_no_error_and_memory_stays_bounded(tmp_path: Path) -> None:
    samples, faults = await soak(tmp_path, seed=1, rate=0, seconds=math.inf, gestures=250, out=None)
    assert faults == []
    assert samples[-1]["gestures"] == 250
    assert samples[-1]["edits"] > 500
    assert samples[-1]["files"] <= samples[1]["files"] + 4
    assert samples[-1]["rss_mib"] - samples[1]["rss_mib"] < 60


@pytest.mark.asyncio
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_memory_does_not_grow_with_edits_of_the_same_texts() -> None:
    uri, grown = "file:///work.py", []
    async with session() as client:
        client.open(uri, "def f(items):\n    return sorted(items)\n")
        for version in range(_WARM + _EDITS):
            # "sorted" and "sortedX" in turn
            client.edit(uri, version + 2, 1, 17, 17 + version % 2, "" if version % 2 else "X")
            if version % 500 == 499:
                await client.hints(uri)
            if version + 1 in (_WARM, _WARM + _EDITS):
                grown.append(client.resident())
    assert grown[1] - grown[0] < _EDITS * _BYTES_PER_EDIT


def test_the_slope_has_an_interval_that_covers_it() -> None:
    hours = [number / 360 for number in range(720)]
    found = slope(hours, [200 + 3 * hour + math.sin(40 * hour) for hour in hours])
    assert found.low < 3 < found.high
    assert found.high - found.low < 3
    flat = slope(hours, [200 + math.sin(40 * hour) for hour in hours])
    assert flat.low < 0 < flat.high
