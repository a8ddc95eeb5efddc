"""That a unit may not end is claimed of loops, coroutines and generators only where the text shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

from .claims import endless


@pytest.mark.parametrize(
    "body",
    [
        "del items[0]",
        "del items[-1]",
        "del items[:10]",
        "del items[next(iter(items))]",
        "items.pop()",
        "items.remove(items[0])",
        "take(items)",
        "others = items\n        others.pop()",
        "items[:] = items[1:]",
        "items -= 1",
        "items = items[1:]",
    ],
)
def test_a_loop_whose_condition_may_change_ends(body: str) -> None:
    assert endless(f"def drain(items):\n    while items:\n        {body}\n") == set()


def test_a_name_for_the_same_object_may_change_it() -> None:
    assert endless("def drain(items, work):\n    rest = items\n    while items:\n        work(rest.pop())\n") == set()
    assert endless("def drain(items, work):\n    take = items.pop\n    while items:\n        work(take())\n") == set()


@pytest.mark.parametrize(
    "text",
    [
        "def serve(queue):\n    while True:\n        work(queue.get())\n",
        "def wait(flag, step):\n    while flag:\n        step()\n",
        "def count():\n    total = 1\n    while total > 0:\n        print(total)\n",
        "def again():\n    print('again')\n    again()\n",
        "import itertools\n\n\ndef serve(queue):\n    for number in itertools.count():\n        work(queue, number)\n",
        "def main(bus):\n    try:\n        while True:\n            bus.read()\n"
        "    except KeyboardInterrupt:\n        bus.close()\n",
    ],
)
def test_what_never_ends_is_still_said(text: str) -> None:
    assert len(endless(text)) == 1


def test_a_loop_whose_errors_are_caught_outside_may_end() -> None:
    loop = "def main(bus):\n    try:\n        while True:\n            bus.read()\n"
    assert endless(f"{loop}    except (OSError, KeyboardInterrupt):\n        pass\n") == set()


def test_a_coroutine_that_is_not_awaited_is_not_waited_for() -> None:
    text = """\
import asyncio
async def poll():
    while True:
        await asyncio.sleep(5)
async def started(tasks):
    tasks.append(supervised(poll(), name="poll"))
async def awaited():
    await poll()
async def together():
    await asyncio.gather(*[poll() for _ in range(3)], poll())
def main():
    asyncio.run(poll())
"""
    assert endless(text) == {"poll", "awaited", "together", "main"}


def test_a_function_that_has_the_name_of_a_builtin_is_not_called_in_other_files(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "generic.py").write_text("def reduced(values):\n    return all(value == 1 for value in values)\n")
    source = b"from .generic import reduced\n\ndef all(values):\n    return reduced(values)\n"
    (tmp_path / "a.py").write_bytes(source)
    [unit] = Analyser().analyse(ParsedSource(source, "python"), tmp_path / "a.py")
    assert unit.code.work is not None
    assert unit.code.work.endless is None


_NUMBERS = """
def numbers():
    n = 0
    while True:
        n += 1
        yield n


def doubled():
    for n in numbers():
        yield 2 * n


def shown():
    for n in numbers():
        print(n)
"""


def test_a_generator_over_numbers_without_end_is_no_more_endless_than_they_are() -> None:
    assert endless(_NUMBERS) == {"shown"}
