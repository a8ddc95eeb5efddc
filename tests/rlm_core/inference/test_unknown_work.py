"""Functions without inputs whose cost is that of an unknown call have no latency; others keep theirs."""

from __future__ import annotations

import pytest
from rlm_core import load
from rlm_core.inference.unknown_work import unknown_call
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import AbstentionCode, CodeText, Query


def code_of(text: str) -> CodeText:
    """The last function of a file, with its facts."""
    source = "import sympy\nfrom other import run\n\n\n" + text
    return Analyser().analyse(ParsedSource(source.encode(), "python"))[-1].code


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("def main():\n    return run()\n", "run()"),
        ("async def main():\n    await run()\n", "run()"),
        ("def main():\n    x = sympy.Symbol('x')\n    return sympy.integrate(x)\n", "sympy."),
    ],
)
def test_an_unknown_call_without_inputs_is_named(text: str, called: str) -> None:
    code = code_of(text)
    found = unknown_call(code, code.work)
    assert found is not None
    assert found.startswith(called)
    [[latency, memory]] = load("builtin").predict([code], [[Query("latency"), Query("memory")]])
    assert latency.abstained is not None
    assert latency.abstained.code is AbstentionCode.UNKNOWN_CALL
    assert latency.median is None
    assert latency.bands == ()
    assert memory.abstained is None


@pytest.mark.parametrize(
    "text",
    [
        "def main(x):\n    return run(x)\n",
        "def main(*names):\n    return run()\n",
        "def main():\n    return sum(range(1000))\n",
        # A function of the program, of whose calls the analysis leaves some unread.
        "def fill(n):\n    for i in range(5):\n        for k in range(20):\n            a[i][k] = b[k].split(n)\n\n\n"
        "def main():\n" + "    fill('a')\n" * 9,
        # What is known outweighs the call.
        "def main():\n    total = 0\n    for i in range(10**6):\n        total += i\n    run()\n",
        # A method and an inner function have inputs from around them.
        "class A:\n    @staticmethod\n    def main():\n        return run()\n",
        # Its own class, which inherits from an unknown one, and a method of a local value.
        "def main():\n    class Point(run):\n        pass\n    return Point()\n",
        "def main():\n    items = make\n    return items.run()\n",
    ],
)
def test_other_functions_keep_their_latency(text: str) -> None:
    code = code_of(text)
    assert unknown_call(code, code.work) is None
    [[latency]] = load("builtin").predict([code], [[Query("latency")]])
    assert latency.abstained is None or latency.abstained.code is not AbstentionCode.UNKNOWN_CALL
