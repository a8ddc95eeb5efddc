"""Scopes: what the names of a unit mean in its file and package."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.cost.scope import ModuleScope, Texts, Trace
from rlm_core.queries.analysis import Analyser
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WorkFacts


def facts_in(folder: Path, name: str, **files: str) -> WorkFacts:
    """The facts of a function of ``main.py`` in a package with these files."""
    (folder / "__init__.py").touch()
    for stem, text in files.items():
        (folder / f"{stem}.py").write_text(text)
    path = folder / "main.py"
    units = Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    [facts] = [unit.code.work for unit in units if unit.unit.qualname == name]
    assert facts is not None
    return facts


def slept(facts: WorkFacts) -> float:
    """The seconds that a unit sleeps."""
    return sum(wait.seconds.likely for wait in facts.waits if wait.seconds)


def test_bare_texts_know_functions_and_nothing_else() -> None:
    scope = Texts({"g": "def g(): pass"})
    definition = scope.function("g")
    assert definition is not None
    assert (definition.qualname, definition.is_method) == ("g", False)
    method = scope.function("g", "self")
    assert method is not None
    assert method.is_method
    assert scope.function("g", "other") is None
    assert scope.function("h") is None
    assert (scope.imported("os"), scope.constant("N"), scope.is_class("C")) == (None, None, False)


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ("from app.models import User\n", True),
        ("import flask_sqlalchemy\n", True),
        ("from . import models\n", True),
        ("import json\n", False),
        ("import remodelled\n", False),
        ("", False),
    ],
)
def test_words_in_the_imports_of_a_file(imports: str, expected: bool) -> None:
    scope = ModuleScope(index_module(ParsedSource(imports.encode(), "python"), "main"), CallGraph())
    assert scope.imports_any("models sqlalchemy") == expected
    assert Trace().of(scope).imports_any("models sqlalchemy") == expected


def test_constants_of_the_file_are_known(tmp_path: Path) -> None:
    main = "import time\nDELAY = 2 * 3\ndef f():\n    time.sleep(DELAY)\n"
    assert slept(facts_in(tmp_path, "f", main=main)) == 6


def test_constants_of_other_files_are_known(tmp_path: Path) -> None:
    main = "import time\nfrom .settings import DELAY\ndef f():\n    time.sleep(DELAY)\n"
    settings = "from .base import DELAY\n"
    assert slept(facts_in(tmp_path, "f", main=main, settings=settings, base="DELAY = 7\n")) == 7


def test_constants_that_import_each_other_end(tmp_path: Path) -> None:
    main = "import time\nfrom .settings import DELAY\ndef f():\n    time.sleep(DELAY)\n"
    facts = facts_in(tmp_path, "f", main=main, settings="from .main import DELAY\n")
    assert [wait.seconds for wait in facts.waits if wait.seconds and wait.seconds.least > 0] == []


@pytest.mark.parametrize(
    "imports",
    ["import time\n", "import time as clock\n", "from time import sleep\n", "from time import sleep as pause\n"],
)
def test_imports_are_followed_to_the_library(tmp_path: Path, imports: str) -> None:
    called = {"import time\n": "time.sleep", "import time as clock\n": "clock.sleep"}.get(imports)
    called = called or imports.split()[-1]
    assert slept(facts_in(tmp_path, "f", main=f"{imports}def f():\n    {called}(3)\n")) == 3


def test_functions_of_the_package_are_read_where_they_are(tmp_path: Path) -> None:
    main = "from .work import twice\ndef f():\n    twice(2)\n"
    work = "import time\nSTEP = 5\ndef twice(n):\n    for i in range(n):\n        time.sleep(STEP)\n"
    assert slept(facts_in(tmp_path, "f", main=main, work=work)) == 10


def test_methods_and_attributes_of_the_class_are_known(tmp_path: Path) -> None:
    main = (
        "import time\nclass Base:\n    DELAY = 4\n    def pause(self, n):\n        time.sleep(n * self.DELAY)\n"
        "class Child(Base):\n    def f(self):\n        self.pause(2)\n"
        "def g():\n    Child().pause(1)\n"
    )
    assert slept(facts_in(tmp_path, "Base.pause", main=main.replace("n * self.DELAY", "self.DELAY"))) == 4
    assert facts_in(tmp_path, "Child.f", main=main).unknown_calls == 0


def test_a_name_that_a_function_binds_hides_the_file(tmp_path: Path) -> None:
    main = "import time\nN = 5\ndef f():\n    N = 2\n    time.sleep(N)\n"
    assert slept(facts_in(tmp_path, "f", main=main)) == 2
