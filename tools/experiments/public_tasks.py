"""Functions of public repositories with versions that are said to be faster, as references: nothing of them is stored.

The repositories teach how to make Python faster, or have a pull request that does. The versions are those of the first
listings, files or chapters whose functions take plain arguments, at most 12 tasks per repository; tasks and sizes were
written before any of them was predicted or measured. A version is a module of the imports, the assignments and the
functions that it needs, with the function renamed to the task: an agent that rewrites a function keeps its name.
"""

from __future__ import annotations

import ast
import random
import string
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

Arguments = Callable[[random.Random], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class PublicTask:
    """A function of a repository in several versions: ``(path, name)`` or ``(path, name, commit)``.

    ``arguments`` makes the arguments of one call. ``imports`` are those that the text of a book leaves out.
    """

    name: str
    repository: str
    commit: str
    versions: tuple[tuple[str, ...], ...]
    arguments: Arguments
    imports: str = ""

    def texts(self, sources: Path) -> tuple[str, ...]:
        """The texts of the versions, from clones ``owner+name`` below a folder.

        Raises:
            FileNotFoundError: there is no clone.
        """
        return tuple(
            _module(_shown(sources, self.repository, commit or self.commit, path), name, self.name, self.imports)
            for path, name, commit in ((*version, "")[:3] for version in self.versions)
        )


@lru_cache
def _shown(sources: Path, repository: str, commit: str, path: str) -> str:
    clone = sources / repository.replace("/", "+")
    if not clone.is_dir():
        raise FileNotFoundError(f"{clone}: clone {repository} there")
    command = ["git", "-C", str(clone), "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def _module(text: str, function: str, name: str, imports: str) -> str:
    """A module of one function under another name, with all that it refers to in its file."""
    tree = ast.parse(text)
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).partition(".")[0]: node for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {
                inner.id: node for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)
            }
    needed, left = set(), [function]
    while left:
        found = defined.get(left.pop())
        if found is not None and found not in needed:
            needed.add(found)
            left += [inner.id for inner in ast.walk(found) if isinstance(inner, ast.Name)]
    kept = [node for node in tree.body if node in needed]
    for node in kept:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == function:
                inner.id = name
        if isinstance(node, ast.FunctionDef) and node.name == function:
            node.name = name
    return imports + ast.unparse(ast.Module(kept, [])) + "\n"


def _floats(count: int, *others: Any) -> Arguments:
    return lambda source: ([source.random() for _ in range(count)], *others)


def _integers(count: int, least: int, most: int) -> Arguments:
    return lambda source: ([source.randint(least, most) for _ in range(count)],)


def _vocabulary(source: random.Random, count: int) -> list[str]:
    return ["".join(source.choices(string.ascii_lowercase, k=5)) for _ in range(count)]


def _words(count: int, distinct: int) -> Arguments:
    return lambda source: (source.choices(_vocabulary(source, distinct), k=count),)


def _two_lists_of_words(source: random.Random) -> tuple[Any, ...]:
    words = _vocabulary(source, 1500)
    return source.choices(words, k=2000), source.choices(words, k=2000)


def _word_in_the_middle(source: random.Random) -> tuple[Any, ...]:
    words = _vocabulary(source, 10_000)
    return words[5000], words


def _prose(source: random.Random) -> tuple[Any, ...]:
    words = [*_vocabulary(source, 300), "the"]
    return " ".join(source.choices(words, k=17_000))[:100_000], "the"


def _arrays(source: random.Random) -> tuple[Any, ...]:
    values = np.array([source.random() for _ in range(20_000)])
    return values, np.array(source.choices([0.1, 0.2, 0.4], k=20)), -10


def _sorted_numbers(source: random.Random) -> tuple[Any, ...]:
    values = sorted(source.random() for _ in range(100_000))
    return values, values[50_000]


def _phonebook(source: random.Random) -> tuple[Any, ...]:
    names = ["".join(source.sample(string.ascii_letters, 8)) for _ in range(2000)]
    return ([(f"{first} {last}", "555-555-5555") for first, last in zip(names[:1000], names[1000:], strict=True)],)


def _tasks(source: random.Random) -> tuple[Any, ...]:
    tasks = [(f"task{number}", number) for number in range(1000)]
    source.shuffle(tasks)
    return (tasks,)


def _given(*values: Any) -> Arguments:
    return lambda source: values


_BOOK = "chrisconlan/fast-python", "d6b67d24500a2465005e3828472d215d64646d97"
_BOOK_IMPORTS = """\
import bisect
import re
from typing import Callable, Dict, List, Set, Tuple

import numpy as np

"""
_HIGH = "mynameisfiber/high_performance_python_2e", "0dbb66c5bb0f1b2e9b65c469b5223403a4b1037c"
_COURSE = "LinkedInLearning/faster-python-code-661762", "f99fd50647e9a4f8c0598770fd1fbd992e2b229a"
_ARTICLES = "switowski/writing-faster-python3", "aee46a5a0eece102e07f77cb02b297bc35230439"
_TIPS = "shahinabdi/python-optimization-tips", "1e19700fa44f88d7a7a7fbae74bb549eae0ab627"


def _listings(chapter: int, **functions: str) -> tuple[tuple[str, ...], ...]:
    folder = f"listings/chapter_{chapter}"
    return tuple((f"{folder}/listing_{chapter}_{file}.py", name) for name, file in functions.items())


def _of_file(path: str, *functions: str) -> tuple[tuple[str, ...], ...]:
    return tuple((path, function) for function in functions)


PUBLIC_TASKS = (
    PublicTask(
        "cumulative_sum",
        *_BOOK,
        _listings(
            2,
            slow_cusum="6_slow_cumulative_sum_with_hidden_complexity",
            slow_cusum_expanded="7_slow_cumulative_sum_with_obvious_complexity",
            python_fast_cusum="8_pure_python_fast_cumulative_sum",
        ),
        _floats(2000),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "moving_average",
        *_BOOK,
        _listings(
            2,
            slow_moving_avg="12_slow_moving_average",
            fast_moving_avg="13_pure_python_fast_moving_average",
        ),
        _floats(20_000, 20),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "weighted_filter",
        *_BOOK,
        _listings(
            2,
            naive_filter="18_naive_weighted_filter_in_pure_python",
            smart_filter="19_smart_weighted_filter_in_pure_python",
        ),
        lambda source: ([source.random() for _ in range(5000)], source.choices([0.1, 0.2, 0.4], k=20), -10),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "array_filter",
        *_BOOK,
        _listings(
            2,
            numpy_naive_filter="20_naive_numpy_filter",
            numpy_smart_filter="21_smart_numpy_filter",
            numpy_naive_matrix_filter="22_numpy_naive_matrix_filter",
        ),
        _arrays,
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "word_counts",
        *_BOOK,
        _listings(
            3,
            slow_count_occurrences="1_slow_count_occurrences",
            fast_count_occurrences="2_fast_count_occurrences",
            defaultdict_fast_count="3_defaultdict_fast_count_occurrences",
            counter_fast_count="4_counter_fast_count_occurrences",
        ),
        _words(5000, 300),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "words_in_both",
        *_BOOK,
        _listings(
            3,
            very_slow_match_within="8_very_slow_match_within",
            slow_match_within="9_slow_match_within",
            fast_match_within="10_fast_match_within",
            fast_intersection="11_fast_intersection",
        ),
        _two_lists_of_words,
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "has_word",
        *_BOOK,
        _listings(
            3,
            naive_in_operator="15_naive_in_operator",
            early_stopping_in_operator="16_early_stopping_in_operator",
            native_in_operator="17_native_python_in_operator",
        ),
        _word_in_the_middle,
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "occurrences",
        *_BOOK,
        _listings(
            3,
            str_split_count="25_pure_python_count_by_string_split",
            str_count="26_pure_python_string_count",
            re_subn_count="27_regex_substitution_count",
            re_findall_count="28_regex_findall_count",
            re_finditer_count="29_regex_finditer_count",
        ),
        _prose,
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "sort",
        *_BOOK,
        _listings(
            4,
            bubble_sort="3_bubble_sort",
            selection_sort="4_selection_sort",
            insertion_sort="5_insertion_sort",
            merge_sort="9_merge_sort",
            quick_sort="10_quick_sort",
            python_native_sort="11_native_python_sort_timsort_",
        ),
        _floats(500),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "largest",
        *_BOOK,
        _listings(
            4,
            naive_find_top_k="14_naive_find_top_k_values",
            heap_find_top_k="15_heap_find_top_k_values",
            heap_find_top_k_expanded="16_heap_find_top_k_values_expanded_",
        ),
        _floats(50_000, 20),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "sorted_contains",
        *_BOOK,
        _listings(4, naive_in_operator="17_naive_in_operator", bisect_search_in="19_bisect_search_in"),
        _sorted_numbers,
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "joined_words",
        *_BOOK,
        _listings(
            5,
            slow_concatenate_words="2_slow_concatenate_string",
            fast_concatenate_words="3_fast_concatenate_string",
        ),
        _words(10_000, 1000),
        _BOOK_IMPORTS,
    ),
    PublicTask(
        "search",
        *_HIGH,
        _of_file(
            "01_understanding/reducing_operations.py",
            "search_slow",
            "search_fast",
            "search_unknown1",
            "search_unknown2",
        ),
        _given(list(range(1000)), 5),
    ),
    PublicTask(
        "find_position",
        *_HIGH,
        (("03_lists_tuples/linear_search.py", "linear_search"), ("03_lists_tuples/binary_search.py", "binary_search")),
        _given(6000, list(range(10_000))),
    ),
    PublicTask(
        "unique_names",
        *_HIGH,
        _of_file("04_dict_set/unique_lookup.py", "list_unique_names", "set_unique_names"),
        _phonebook,
    ),
    PublicTask(
        "norm",
        *_HIGH,
        (
            ("06_matrix/norm/norm_python.py", "norm_square_list"),
            ("06_matrix/norm/norm_python_comprehension.py", "norm_square_list_comprehension"),
        ),
        _given(list(range(100_000))),
    ),
    PublicTask(
        "norm_of_array",
        *_HIGH,
        (
            ("06_matrix/norm/norm_numpy.py", "norm_square_numpy"),
            ("06_matrix/norm/norm_numpy_dot.py", "norm_square_numpy_dot"),
        ),
        _given(np.arange(100_000)),
    ),
    PublicTask("letter_grade", *_COURSE, _of_file("Ch02/02_02/Optimized/grades.py", "grade", "grade2"), _given(85)),
    PublicTask(
        "normalized",
        *_COURSE,
        _of_file("Ch03/03_01/Optimized/2/norm.py", "normalize", "normalize2", "normalize3"),
        _integers(1000, 5, 50),
    ),
    PublicTask(
        "fix_numbers",
        *_COURSE,
        _of_file("Ch03/03_02/Optimized/fncall.py", "fix_nums", "fix_nums_inline"),
        _integers(1000, -20, 20),
    ),
    PublicTask(
        "sort_tasks", *_COURSE, _of_file("Ch03/03_04/Optimized/builtin.py", "sort_tasks", "sort_tasks_ig"), _tasks
    ),
    PublicTask("zeros", *_COURSE, _of_file("Ch03/03_05/Optimized/alloc.py", "allocz", "allocz_fixed"), _given(10_000)),
    PublicTask("fibonacci", *_COURSE, _of_file("Ch04/04_01/Optimized/fib.py", "fib", "fibc"), _given(20)),
    PublicTask(
        "count_bits", *_COURSE, _of_file("Ch04/04_02/Optimized/nbits.py", "nbits", "nbits_fixed"), _given(40_000)
    ),
    PublicTask(
        "squares",
        *_ARTICLES,
        _of_file("building_dictionary.py", "test_for_loop", "test_pairs", "test_comprehension"),
        _given(),
    ),
    PublicTask(
        "count_numbers", *_ARTICLES, _of_file("default_dict.py", "test_slow", "test_fast", "test_counter"), _given()
    ),
    PublicTask(
        "distinct",
        *_ARTICLES,
        _of_file("duplicates.py", "test_for_loop", "test_list_comprehension", "test_set", "test_dict"),
        _given(),
    ),
    PublicTask(
        "odd_numbers",
        *_ARTICLES,
        _of_file("filter_list.py", "test_loop", "test_filter", "test_comprehension"),
        _given(),
    ),
    PublicTask(
        "first_multiple",
        *_ARTICLES,
        _of_file("find_element.py", "while_loop", "for_loop", "list_comprehension", "generator"),
        _given(),
    ),
    PublicTask("has_number", *_ARTICLES, _of_file("membership.py", "test_for_loop", "test_in"), _given(999_958)),
    PublicTask(
        "has_number_in_set",
        *_ARTICLES,
        _of_file("membership2.py", "test_in", "test_in_set", "test_in_set_proper"),
        _given(999_958),
    ),
    PublicTask(
        "merged", *_ARTICLES, _of_file("merge_dict.py", "test_update", "test_unpacking", "test_union"), _given()
    ),
    PublicTask(
        "even_squares",
        *_TIPS,
        _of_file("examples/list_optimization.py", "calculate_squares_loop", "calculate_squares_comprehension"),
        _integers(10_000, 0, 1000),
    ),
    PublicTask(
        "common_elements",
        *_TIPS,
        _of_file("examples/lookup_optimization.py", "find_common_elements_list", "find_common_elements_set"),
        _integers(100, 0, 999_999),
    ),
    PublicTask(
        "joined_items",
        *_TIPS,
        _of_file(
            "examples/string_optimization.py",
            "concatenate_with_plus",
            "concatenate_with_join",
            "concatenate_with_fstring",
            "concatenate_with_format",
        ),
        _integers(1000, 0, 9999),
    ),
    PublicTask(
        "sum_of_squares",
        *_TIPS,
        _of_file("examples/generator_optimization.py", "process_with_list", "process_with_generator"),
        _given(10_000),
    ),
    PublicTask(
        "escaped",
        "numba/llvmlite",
        "2d589e39d37b011ca331341a8b4d5c1aaaf59301",
        (
            ("llvmlite/ir/values.py", "_escape_string", "2d589e39d37b011ca331341a8b4d5c1aaaf59301^"),
            ("llvmlite/ir/values.py", "_escape_string"),
        ),
        lambda source: (source.randbytes(5000),),
    ),
    PublicTask(
        "concat",
        "phatpiglet/autocorrect",
        "53c60b60cf4a07eb54c52aac62bba8457ce46da2",
        (
            ("autocorrect/utils.py", "concat", "53c60b60cf4a07eb54c52aac62bba8457ce46da2^"),
            ("autocorrect/utils.py", "concat"),
        ),
        _given("abc", "d", "efgh"),
    ),
)
