"""Which files are solutions: by a comment, a class, a link, a template, a path, or because they read their input."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries.judges import JUDGES
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.solutions import is_solution, judge_of, path_evidence
from rlm_core.source.units import find_units
from rlm_core.types import JudgeChoice

READERS = {
    "c": '#include <stdio.h>\nint main(void) { int n; scanf("%d", &n); printf("%d", n); return 0; }\n',
    "cpp": "#include <bits/stdc++.h>\nint main() { int n; std::cin >> n; std::cout << n; }\n",
    "csharp": "using System;\nclass P { static void Main() { var n = int.Parse(Console.ReadLine()); } }\n",
    "go": 'package main\n\nimport (\n\t"bufio"\n\t"os"\n)\n\nfunc main() { r := bufio.NewReader(os.Stdin); _ = r }\n',
    "java": "import java.util.*;\npublic class Main { public static void main(String[] args)"
    " { Scanner in = new Scanner(System.in); } }\n",
    "javascript": "const lines = require('fs').readFileSync(0, 'utf8').split('\\n');\nconsole.log(lines.length);\n",
    "kotlin": "fun main() { val n = readLine()!!.toInt(); println(n) }\n",
    "php": "<?php\n$n = intval(fgets(STDIN));\necho $n;\n",
    "ruby": "n = gets.to_i\nputs n\n",
    "rust": "use std::io;\nfn main() { let mut s = String::new(); io::stdin().read_line(&mut s).unwrap(); }\n",
    "scala": "object Main { def main(args: Array[String]): Unit = { val n = scala.io.StdIn.readInt() } }\n",
    "swift": "let n = Int(readLine()!)!\nprint(n)\n",
    "typescript": "const lines: string[] = require('fs').readFileSync(0, 'utf8').split('\\n');\n",
}
ORDINARY = {
    "c": '#include "server.h"\nint main(int argc, char **argv) { return serve(argv[1]); }\n',
    "cpp": "#include <vector>\nnamespace app { int total(const std::vector<int>& v) { return v.size(); } }\n",
    "csharp": "using Microsoft.AspNetCore.Mvc;\npublic class HomeController { public int Get() { return 1; } }\n",
    "go": 'package server\n\nimport "net/http"\n\nfunc Serve(w http.ResponseWriter, r *http.Request) {}\n',
    "java": "package com.example.app;\npublic class Service { int total(int a) { return a; } }\n",
    "javascript": "import React from 'react';\nexport default function Button() { return null; }\n",
    "kotlin": "package com.example.app\nclass Service { fun total(a: Int): Int { return a } }\n",
    "php": "<?php\nnamespace App\\Http;\nclass Kernel { function handle($r) { return $r; } }\n",
    "ruby": "module App\n  class Service\n    def call(a) = a\n  end\nend\n",
    "rust": "use crate::config::Config;\npub fn run(c: &Config) -> usize { c.n }\n",
    "scala": "package app\nclass Service { def total(a: Int): Int = a }\n",
    "swift": 'import SwiftUI\nstruct Home: View { var body: some View { Text("a") } }\n',
    "typescript": "import { api } from './api';\nexport const load = async (id: number) => api.get(id);\n",
}
WRITTEN = sorted(name for name, entry in LANGUAGES.items() if entry.suffixes and entry.grammar is not None)
OTHERS = sorted(set(WRITTEN) - {"python"})


def solves(source: str, language: str, path: str | None = None) -> bool:
    return is_solution(ParsedSource(source.encode(), language), PurePath(path) if path is not None else None)


@pytest.mark.parametrize("language", OTHERS)
def test_a_main_or_script_that_reads_standard_input_is_a_solution(language: str) -> None:
    assert solves(READERS[language], language, "/home/user/work/tool")


@pytest.mark.parametrize("language", OTHERS)
def test_an_ordinary_file_is_not_a_solution_and_has_no_unit(language: str) -> None:
    path = PurePath("/home/user/shop/src/service" + LANGUAGES[language].suffixes[0])
    assert not solves(ORDINARY[language], language, str(path))
    assert not find_units(ParsedSource(ORDINARY[language].encode(), language), path)


@pytest.mark.parametrize("language", OTHERS)
def test_a_comment_asks_for_a_program(language: str) -> None:
    source = ORDINARY[language]
    for directive in ("program", "latency < 20 ms", "ignore"):
        comment = f"{'#' if language == 'ruby' else '//'} rlm: {directive}\n"
        marked = source.replace("<?php\n", f"<?php\n{comment}") if language == "php" else comment + source
        [unit] = find_units(ParsedSource(marked.encode(), language))
        assert unit.kind == "program", directive


def test_a_comment_asks_for_a_python_script_as_a_program() -> None:
    source = b"import json\n\n# rlm: program\nprint(json.dumps([]))\n"
    assert [(unit.kind, unit.qualname) for unit in find_units(ParsedSource(source, "python"))] == [
        ("program", "<file>")
    ]
    assert not find_units(ParsedSource(source.replace(b"# rlm: program", b"# rlm: latency < 1 s"), "python"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Solution", True), ("Solution2", True), ("Solution_TLE", True), ("SolutionExplorer", False), ("Solver", False)],
)
@pytest.mark.parametrize(
    ("language", "pattern"), [("python", "class {}:\n    x = 1\n"), ("java", "class {} {{ int x; }}")]
)
def test_a_class_solution_is_a_solution(language: str, pattern: str, name: str, expected: bool) -> None:
    source = pattern.format(name) if language == "python" else "package com.a.b.c;\n" + pattern.format(name)
    assert solves(source, language, "/home/user/a/b") is expected


@pytest.mark.parametrize(
    ("path", "by_judge", "by_number"),
    [
        ("/w/leetcode/graph.go", True, False),
        ("/w/LeetCode-Solutions/C++/two-sum.cpp", True, False),
        ("/w/AtCoder/abc123/d.cpp", True, True),
        ("/w/boj/main.cc", True, False),
        ("/w/백준/Gold/1753. 최단경로/main.cc", True, True),
        ("/w/cf/1A.cpp", False, True),
        ("/w/x/abc123_d.py", False, True),
        ("/w/x/0001-two-sum/0001-two-sum.js", False, True),
        ("/w/x/two-sum/two-sum.js", False, True),
        ("/w/shop/src/service.ts", False, False),
        ("/w/shop/button/button.ts", False, False),
        ("/w/shop/src/v2/index.ts", False, False),
        ("/w/subway/swear/abcdef.go", False, False),
        ("/w/reports/2024/totals.go", False, False),
    ],
)
def test_what_a_path_says(path: str, by_judge: bool, by_number: bool) -> None:
    assert path_evidence(PurePath(path)) == (by_judge, by_number)


def test_a_numbered_file_that_imports_its_project_is_not_a_solution() -> None:
    source = "import { db } from '../db';\nexport async function up() { await db.run(); }\n"
    assert not solves(source, "typescript", "/w/migrations/0001-create-users.ts")
    assert solves("function f(n) { return n; }\n", "javascript", "/w/x/0001-two-sum/0001-two-sum.js")


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("go", "func twoSum(nums []int, target int) []int { return nil }\n"),
        ("c", "int* twoSum(int* nums, int numsSize, int target, int* returnSize) { return nums; }\n"),
        ("cpp", "class LRUCache { public: int get(int key) { return -1; } };\n"),
        ("typescript", "function twoSum(nums: number[], target: number): number[] { return []; }\n"),
        (
            "javascript",
            "/**\n * @param {number[]} nums\n * @return {number}\n */\nvar f = function(nums) { return 0; };\n",
        ),
        ("ruby", "# @param {Integer[]} nums\n# @return {Integer}\ndef f(nums)\n  0\nend\n"),
        ("rust", "// https://leetcode.com/problems/two-sum/\npub fn f() -> i32 { 1 }\n"),
        ("kotlin", "// Time:  O(n)\n// Space: O(1)\nclass Fancy { fun add(n: Int): Int { return n } }\n"),
    ],
)
def test_the_template_of_a_judge_is_a_solution(language: str, source: str) -> None:
    assert solves(source, language)


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_a_command_that_reads_its_arguments_is_not_a_solution(language: str) -> None:
    source = (
        '#include <stdio.h>\nint main(int argc, char **argv) { FILE *f = argc > 1 ? fopen(argv[1], "r") : stdin; }\n'
    )
    assert not solves(source, language, "/w/tools/count.c")


def test_a_python_script_is_a_program_where_a_judge_is_named() -> None:
    source = "import sys\n\ndef solve(n):\n    return n\n\nprint(solve(int(sys.stdin.readline())))\n"
    assert solves(source, "python", "/w/atcoder/abc123/d.py")
    assert not solves(source, "python", "/w/shop/ask.py")
    assert not solves("from shop.models import User\n" + source, "python", "/w/atcoder/abc123/d.py")
    units = find_units(ParsedSource(source.encode(), "python"), PurePath("/w/atcoder/d.py"))
    assert [(unit.kind, unit.header.start_line) for unit in units] == [("program", 0), ("function", 2)]


def test_tests_headers_and_declarations_are_not_solutions() -> None:
    assert not solves("function f(n) { return n; }\n", "javascript", "/w/leetcode/two-sum.test.js")
    assert not solves("declare function f(n: number): number;\n", "typescript", "/w/leetcode/two-sum.d.ts")
    assert not solves("int f(int n);\n", "c", "/w/leetcode/two-sum.h")


@given(st.sampled_from(WRITTEN), st.text(max_size=200), st.text(max_size=40))
def test_any_text_and_path_get_an_answer(language: str, text: str, path: str) -> None:
    solves(text, language, path)


def judge(source: str, language: str = "cpp", path: str | None = None) -> JudgeChoice | None:
    return judge_of(ParsedSource(source.encode(), language), PurePath(path) if path is not None else None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("boj/1753.cpp", "boj"),
        ("백준/Gold/1753. 최단경로/a.cpp", "boj"),
        ("at-coder/abc123/d.cpp", "atcoder"),
        ("contests/ABC123_d.cpp", "atcoder"),
        ("leetcode/two-sum.cpp", "leetcode"),
        ("leetcode/old/baekjoon/a.cpp", "boj"),
        ("src/abcde/1234.cpp", None),
        ("codeforces/1A.cpp", None),
    ],
)
def test_a_path_may_name_the_judge(path: str, expected: str | None) -> None:
    assert judge("int f(int n) { return n; }\n", path=path) == (JudgeChoice(expected) if expected else None)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("// https://www.acmicpc.net/problem/1753", "boj"),
        ("// BOJ 1753", "boj"),
        ("// https://atcoder.jp/contests/abc123/tasks/abc123_d", "atcoder"),
        ("// https://leetcode.com/problems/two-sum/", "leetcode"),
    ],
)
def test_a_comment_may_name_the_judge(comment: str, expected: str) -> None:
    assert judge(f"{comment}\n{READERS['cpp']}") == JudgeChoice(expected)


def test_a_name_in_a_string_is_no_evidence() -> None:
    assert judge('const char *site = "atcoder";\nint f() { return 1; }\n') is None


@pytest.mark.parametrize("language", sorted(READERS))
def test_programs_that_read_standard_input_count_as_those_of_boj(language: str) -> None:
    assert judge(READERS[language], language) == JudgeChoice("boj")


def test_a_class_solution_is_that_of_leetcode_wherever_it_is() -> None:
    source = "class Solution {\npublic:\n  int f(int n) { return n; }\n};\n"
    assert judge(source, path="atcoder/a.cpp") == JudgeChoice("leetcode")


@pytest.mark.parametrize(("runtime", "expected"), [("", None), (" runtime=pypy", "pypy")])
def test_a_directive_takes_precedence_over_all_evidence(runtime: str, expected: str | None) -> None:
    source = f"# rlm: judge=AtCoder{runtime}\nclass Solution:\n    pass\nprint(input())\n"
    assert judge(source, "python", "boj/a.py") == JudgeChoice("atcoder", True, expected)


def test_a_directive_makes_a_python_file_a_program() -> None:
    assert solves("# rlm: judge=boj\nprint(input())\n", "python")
    assert not solves("print(input())\n", "python")


def test_every_judge_that_a_text_may_name_is_known() -> None:
    named = {found.judge for name in JUDGES if (found := judge("int f();\n", path=f"{name}/a.cpp")) is not None}
    assert named == set(JUDGES)


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("java", "class LRUCache { int get(int key) { return -1; } }\n"),
        ("java", "// Time: O(1)\npackage shop;\nclass LRUCache { int get(int key) { return -1; } }\n"),
        ("go", "package cache\n\n// time complexity: O(n)\nfunc find(items []int) int { return len(items) }\n"),
    ],
)
def test_a_class_or_a_comment_of_its_cost_is_not_the_template_of_a_judge(language: str, source: str) -> None:
    assert not solves(source, language)
