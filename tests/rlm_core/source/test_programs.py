"""The programs of a solution: the whole file, named after what it declares first."""

from __future__ import annotations

import pytest
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.programs import find_programs
from rlm_core.types import Unit

# Per language: a solution as judges take it, and the name and 0-based line that the program is shown at.
SOLUTIONS = {
    "c": ("// two sum\n#include <stdlib.h>\n#define N 3\nint *twoSum(int *a, int n) {\n  return a;\n}\n", "twoSum", 3),
    "cpp": (
        "#include <vector>\nusing namespace std;\nclass Solution {\npublic:\n  int f() { return 1; }\n};\n",
        "Solution",
        2,
    ),
    "csharp": ("using System;\npublic class Solution {\n  public int F() { return 1; }\n}\n", "Solution", 1),
    "go": ('package main\n\nimport "sort"\n\n// F sorts.\nfunc F(a []int) { sort.Ints(a) }\n', "F", 5),
    "java": ("package a;\nimport java.util.*;\nclass Solution { int f() { return 1; } }\n", "Solution", 2),
    "javascript": ("'use strict';\nconst n = 3;\nvar f = function (x) { return x; };\n", "f", 2),
    "kotlin": ("package a\nimport b.c\nclass Solution {\n  fun f(): Int { return 1 }\n}\n", "Solution", 2),
    "php": ("<?php\nnamespace A;\nclass Solution {\n  function f($x) { return $x; }\n}\n", "Solution", 2),
    "python": ("import math\n\nclass Solution:\n    def f(self):\n        return 1\n", "Solution", 2),
    "ruby": ("require 'set'\n# doc\ndef two_sum(a)\n  a\nend\n", "two_sum", 2),
    "rust": ("use std::io;\nstruct S;\nimpl Solution {\n  pub fn f() -> i32 { 1 }\n}\n", "Solution", 2),
    "scala": ("package a\nimport b._\nobject Solution {\n  def f(x: Int): Int = x\n}\n", "Solution", 2),
    "swift": ("import Foundation\nclass Solution {\n  func f() -> Int { return 1 }\n}\n", "Solution", 1),
    "typescript": ("import x from 'y';\ntype A = number;\nexport const f = (a: A): A => a;\n", "f", 2),
}


# Dialects of Python and the languages without a grammar have units of other kinds.
WRITTEN = sorted(name for name, entry in LANGUAGES.items() if entry.suffixes and entry.grammar is not None)
OTHERS = sorted(set(WRITTEN) - {"python"})


def programs(source: str, language: str) -> list[Unit]:
    return find_programs(ParsedSource(source.encode(), language))


def test_every_language_has_a_solution() -> None:
    assert sorted(SOLUTIONS) == WRITTEN


@pytest.mark.parametrize("language", SOLUTIONS)
def test_a_solution_is_one_program_named_after_what_it_declares(language: str) -> None:
    source, name, line = SOLUTIONS[language]
    [unit] = programs(source, language)
    assert (unit.qualname, unit.name.start_line) == (name, line)
    assert source.encode()[unit.name.start_byte : unit.name.end_byte].decode() == name
    assert unit.basis == "program"


@pytest.mark.parametrize("language", SOLUTIONS)
def test_the_model_reads_the_whole_file(language: str) -> None:
    source = SOLUTIONS[language][0]
    [unit] = programs(source, language)
    assert canonical(unit.text, language) == canonical(source, language)


@pytest.mark.parametrize(
    ("source", "language", "name"),
    [
        ("int &f(int &x) { return x; }\n", "cpp", "f"),
        ("template <class T>\nT f(T x) { return x; }\n", "cpp", "f"),
        ("int A::f() { return 1; }\n", "cpp", "A::f"),
        ("int **f(void) { return 0; }\n", "c", "f"),
        ("int F() { return 2; }\n", "csharp", "F"),
        ("package a\n\ntype T struct{}\n\nfunc (t T) M() {}\n", "go", "M"),
        ("const f = async (x) => x;\n", "javascript", "f"),
        ("export default function f() {}\n", "javascript", "f"),
        ("function f(): void {}\n", "typescript", "f"),
        ("fun f(): Int = 1\n", "kotlin", "f"),
        ("<?php\nfunction f() {}\n", "php", "f"),
        ("fn f() {}\n", "rust", "f"),
        ("def f(x: Int) = x\n", "scala", "f"),
        ("func f() {}\n", "swift", "f"),
    ],
)
def test_without_a_solution_class_the_first_function_names_the_program(source: str, language: str, name: str) -> None:
    [unit] = programs(source, language)
    assert unit.qualname == name


@pytest.mark.parametrize(
    ("source", "language", "line"),
    [
        ('package main\n\nimport "fmt"\n\nvar x = 1\n', "go", 4),
        ("#include <a.h>\nint x = 1;\n", "c", 1),
        ("import a.b\n\nval x = 1\n", "kotlin", 2),
        ("// doc\nsolve();\n", "javascript", 1),
        ("package main\n", "go", 0),
        ("# doc\nimport sys\n\ndef f(): ...\n", "python", 1),
    ],
)
def test_a_file_that_declares_nothing_is_shown_at_its_first_line_of_code(source: str, language: str, line: int) -> None:
    [unit] = programs(source, language)
    assert (unit.qualname, unit.name.start_line) == ("<file>", line)
    assert unit.name.end_line == line


def test_several_solution_classes_are_a_program_each() -> None:
    source = "class Solution { int f() { return 1; } }\nclass Solution2 { int f() { return 2; } }\n"
    assert [unit.qualname for unit in programs(source, "java")] == ["Solution", "Solution2"]
    assert all("class" in unit.text and unit.text.count("class") == 1 for unit in programs(source, "java"))


@pytest.mark.parametrize("language", sorted(set(OTHERS) - {"php"}))
def test_a_file_of_comments_alone_is_no_program(language: str) -> None:
    assert programs("# nothing\n" if language == "ruby" else "// nothing\n", language) == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_file_with_syntax_errors_is_still_a_program(language: str) -> None:
    source = SOLUTIONS[language][0] + "\n)))\n"
    [unit] = programs(source, language)
    assert unit.text.rstrip().endswith(")))")
