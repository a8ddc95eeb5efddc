"""Sizes from calls in a project: which calls count, what is kept of several, and what an edit changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.queries import project_callers
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import FixedCalls, SizeValue

CART = """
def total(orders: list[float], rate=1.2) -> float:
    return sum(order * rate for order in orders)


def pairs(items: list[int], others: list[int]) -> int:
    found = 0
    for a in items:
        for b in others:
            if a == b:
                found += 1
    return found


class Cart:
    def __init__(self, capacity: int) -> None:
        self.slots = [None] * capacity

    def fill(self, count: int) -> int:
        return sum(range(count))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package in a project."""
    package = tmp_path / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .cart import Cart, total\n")
    (package / "cart.py").write_text(CART)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def sizes(project: Path, analyser: Analyser | None = None, text: str | None = None) -> dict[str, dict[str, SizeValue]]:
    """The sizes of the functions of the package."""
    path = project / "src" / "shop" / "cart.py"
    parsed = ParsedSource((text or path.read_text()).encode(), "python")
    units = (analyser or Analyser(call_sizes=True)).analyse(parsed, path, "cart")
    return {entry.unit.qualname: {size.name: size for size in entry.code.sizes} for entry in units if entry.code.sizes}


def script(project: Path, text: str, name: str = "run.py") -> Path:
    path = project / "scripts" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "from shop.cart import total\ntotal([0.0] * 1000)\n",
        "from shop import total\ntotal(list(range(1000)))\n",
        "from shop import cart\ncart.total(orders=range(1000))\n",
        "from shop.cart import total\n\n\ndef main():\n    orders = [1.0] * 1000\n    total(orders)\n",
        "from shop.cart import total\nif __name__ == '__main__':\n    total([0.0] * 1000, 2)\n",
    ],
)
def test_a_call_in_another_file_fixes_the_size(project: Path, text: str) -> None:
    script(project, text)
    found = sizes(project)["total"]["orders"]
    assert (found.value, found.source, found.calls) == (1000, "calls", FixedCalls(1, 1, 1000, 1000))
    assert found.rule == ("run.main" if "def main" in text else "module run")


def test_of_several_calls_the_largest_gives_the_sizes(project: Path) -> None:
    script(
        project,
        "from shop.cart import pairs\npairs([1] * 50, [2] * 40)\npairs([1] * 500, [2] * 20)\npairs(load(), [])\n",
    )
    found = sizes(project)["pairs"]
    assert found["items"].value == 500
    assert found["items"].calls == FixedCalls(2, 3, 50, 500)
    # The second list is that of the same call, not the longest.
    assert found["others"].value == 20
    assert found["others"].calls == FixedCalls(3, 3, 0, 40)


def test_methods_of_known_objects_and_constructors_count(project: Path) -> None:
    script(project, "from shop.cart import Cart\ncart = Cart(500)\ncart.fill(20_000)\nunknown().fill(10)\n")
    found = sizes(project)
    assert found["Cart.fill"]["count"].value == 20_000
    assert found["Cart.fill"]["count"].calls == FixedCalls(1, 1, 20_000, 20_000)
    assert found["Cart.__init__"]["capacity"].value == 500


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_cart.py", "from shop.cart import total\ntotal([0.0] * 1000)\n"),
        ("run.py", "from shop.cart import total\ntotal([1.0, 2.0])\n"),
        ("run.py", "from other.cart import total\ntotal([0.0] * 1000)\n"),
        ("run.py", "def total(orders):\n    pass\n\n\ntotal([0.0] * 1000)\n"),
        ("run.py", "from shop.cart import total\ntotal(*[[0.0] * 1000])\n"),
        ("run.py", "# total([0.0] * 1000)\n"),
    ],
)
def test_tests_small_sizes_and_calls_of_other_functions_fix_nothing(project: Path, name: str, text: str) -> None:
    script(project, text, name)
    assert sizes(project) == {}


def test_an_edit_of_the_file_and_of_another_one_changes_the_sizes(project: Path) -> None:
    path = script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    opened: dict[Path, ParsedSource] = {}
    analyser = Analyser(opened.get, call_sizes=True)
    assert sizes(project, analyser)["total"]["orders"].value == 1000
    longer = f"{CART}\n\ndef main():\n    total([0.0] * 5000)\n"
    assert sizes(project, analyser, longer)["total"]["orders"].calls == FixedCalls(2, 2, 1000, 5000)
    # In the editor, before it is saved.
    opened[path] = ParsedSource(b"from shop.cart import total\ntotal([0.0] * 2000)\n", "python")
    assert sizes(project, analyser, longer)["total"]["orders"].calls == FixedCalls(2, 2, 2000, 5000)
    del opened[path]
    path.write_text("total = None\n")
    analyser.refresh()
    assert sizes(project, analyser, longer)["total"]["orders"].calls == FixedCalls(1, 1, 5000, 5000)
    assert sizes(project, analyser) == {}


def test_a_provisional_analysis_reads_no_other_file_and_says_so(project: Path) -> None:
    script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    path = project / "src" / "shop" / "cart.py"
    analyser = Analyser(call_sizes=True)

    def analyse(text: str, *, provisional: bool) -> tuple[bool, bool]:
        """Whether a size is known, and whether the analysis is settled."""
        units = analyser.analyse(ParsedSource(text.encode(), "python"), path, "cart", provisional=provisional)
        return any(unit.code.sizes for unit in units), analyser.is_settled("cart")

    assert analyse(CART, provisional=True) == (False, False)
    assert analyse(CART, provisional=False) == (True, True)
    # Sizes that an edit does not concern are kept.
    assert analyse(CART.replace("found = 0", "found = 00"), provisional=True) == (True, True)


def test_a_provisional_analysis_is_not_settled_after_an_edit_of_a_caller(project: Path) -> None:
    run = script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    path = project / "src" / "shop" / "cart.py"
    opened: dict[Path, ParsedSource] = {}
    analyser = Analyser(opened.get, call_sizes=True)

    def is_settled(*, provisional: bool) -> bool:
        analyser.analyse(ParsedSource(CART.encode(), "python"), path, "cart", provisional=provisional)
        return analyser.is_settled("cart")

    assert is_settled(provisional=False)
    assert is_settled(provisional=True)
    opened[run] = ParsedSource(b"from shop.cart import total\ntotal([0.0] * 2000)\n", "python")
    assert not is_settled(provisional=True)
    assert is_settled(provisional=False)
    assert is_settled(provisional=True)


def test_comments_take_precedence_over_calls(project: Path) -> None:
    script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    given = CART.replace("def total", "# rlm: sizes orders=50\ndef total")
    assert sizes(project, text=given)["total"]["orders"].source == "comment"


def test_calls_in_the_cells_of_a_notebook_count() -> None:
    cells = [CART.encode(), b"orders = [0.0] * 3000\n", b"total(orders)\n"]
    found = Analyser(call_sizes=True).analyse_cells(cells)[0]
    assert {size.value for entry in found for size in entry.code.sizes} == {3000}


def test_a_project_of_too_many_files_fixes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    monkeypatch.setattr(project_callers, "_MOST_FILES", 2)
    assert sizes(project) == {}


def test_without_the_option_calls_give_no_sizes(project: Path) -> None:
    script(project, "from shop.cart import total\ntotal([0.0] * 1000)\n")
    assert sizes(project, Analyser()) == {}
