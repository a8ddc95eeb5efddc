"""A small project with a store of measurements, as tests of the report need it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rlm_core.measurement import Measurement, Store, source_hash
from rlm_core.measurement.functions.sources import FunctionFile
from rlm_core.measurement.programs.sources import find_programs

from tests.rlm_core.measurement.test_store import measurement

MODULES = {
    "shop/cart.py": """\
def total(prices):
    return sum(prices)


def cheapest(prices):
    return sorted(prices)[0]
""",
    "shop/tax.py": """\
def rate(country):
    return {"at": 0.2, "de": 0.19}[country]


def round_up(x):
    return -(-x // 1)
""",
    "shop/deep/find.py": """\
def pairs(items):
    return [(a, b) for a in items for b in items if a < b]
""",
}
PROGRAM = """\
class Solution:
    def run(self, n):
        return n * n


print(Solution().run(int(input())))
"""


def write_shop(folder: Path) -> Store:
    """Write the project and a store beside it: both metrics of six units, one value far off."""
    store = Store(folder / "measurements.sqlite3")
    found: list[Measurement] = []
    for number, (name, text) in enumerate(MODULES.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        source = FunctionFile(path)
        module = name.removesuffix(".py").replace("/", ".")
        for line, content in enumerate(text.splitlines(), 1):
            if content.startswith("def "):
                function = source.function(content[4:].partition("(")[0], line)
                assert function is not None
                slow = 1e-6 * (number + 1) if module != "shop.tax" else 0.5
                found += _both(
                    measurement(
                        source_hash=function.hash,
                        source_sha1=function.sha1,
                        package="shop",
                        module=module,
                        qualname=function.unit.qualname,
                        file=name,
                        line=line,
                        path=str(path),
                    ),
                    slow,
                    512.0 * (number + 1),
                )
    (folder / "judge").mkdir()
    (folder / "judge" / "square.py").write_text(PROGRAM)
    [program], _ = find_programs(folder / "judge", [])
    for name, seconds in (("small.txt", 0.02), ("large.txt", 0.08)):
        found += _both(
            measurement(
                source_hash=source_hash(program.text, "python"),
                source_sha1=program.sha1,
                kind="program",
                package="judge",
                module="square",
                qualname=program.qualname,
                file="square.py",
                path=str(program.path),
                workload={"runtime": "cpython-3.12", "input": name},
            ),
            seconds,
            2e7,
        )
    store.add(found)
    return store


def _both(one: Measurement, seconds: float, peak: float) -> list[Measurement]:
    return [
        replace(one, median=seconds, low=seconds / 2, high=seconds * 2),
        replace(one, metric="memory", median=peak, low=peak, high=peak),
    ]
