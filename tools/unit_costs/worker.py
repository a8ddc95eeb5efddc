"""Times snippets in a separate process: requests on stdin, seconds on stdout, one JSON object per line.

It needs only the standard library (and what a snippet imports) and runs under the interpreter that is measured. A
result is the least processor time over many short rounds, so other work on the machine hardly enters.
"""

from __future__ import annotations

import gc
import json
import sys
import textwrap
import time
from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Any

ROUND = 0.0004  # seconds that the turns of one round take together
TOTAL = 0.025  # seconds for all rounds of one snippet
FEWEST, MOST = 4, 100  # rounds
_TEMPLATE = """
def timed(_loops, _clock, _repeat):
{setup}
    _start = _clock()
    for _ in _repeat(None, _loops):
{snippet}
    return _clock() - _start
"""


def timer(setup: str, snippet: str, n: int) -> Callable[[int], float]:
    """A function of the number of turns that returns the seconds they took."""
    text = _TEMPLATE.format(setup=textwrap.indent(setup or "pass", " " * 4), snippet=textwrap.indent(snippet, " " * 8))
    namespace: dict[str, Any] = {"n": n}
    exec(compile(text, "<entry>", "exec"), namespace)  # noqa: S102 - our own entries
    timed = namespace["timed"]
    return lambda loops: timed(loops, time.thread_time, repeat)


def least(run: Callable[[int], float]) -> float:
    """Seconds per turn: the least over rounds."""
    loops = 1
    seconds = run(loops)
    while seconds < ROUND / 2:
        loops = max(loops * 2, min(int(loops * ROUND / max(seconds, 1e-7)), loops * 100))
        seconds = run(loops)
    rounds = max(FEWEST, min(MOST, int(TOTAL / seconds)))
    return min(seconds, *(run(loops) for _ in range(rounds))) / loops


def measure(request: dict[str, Any]) -> float:
    """Seconds of one snippet without its baseline."""
    n, unroll = request["n"], request["unroll"]
    gc.collect()
    gc.freeze()
    baseline = request["baseline"]
    empty = _empty() if baseline == "pass" else least(timer(request["setup"], "\n".join([baseline] * unroll), n))
    seconds = least(timer(request["setup"], "\n".join([request["snippet"]] * unroll), n)) - empty
    return float(seconds / unroll / request["per"])


@cache
def _empty() -> float:
    return least(timer("", "pass", 0))


def main() -> None:
    """Answer requests until stdin ends."""
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"seconds": measure(json.loads(line))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
