"""What the analysis takes from a trial: counts of loops, conditions and recursion where the text fixes all inputs."""

from __future__ import annotations

import pytest

from ..counting import count, facts_of

COLLATZ = """
def steps(n):
    found = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        found += 1
        time.sleep(1)
    return found
"""


def test_a_loop_that_no_counter_ends_is_counted() -> None:
    known = count("def f():\n    n = 27\n" + COLLATZ.partition("def steps(n):\n")[2])
    assert (known.least, known.likely, known.most) == (111, 111, 111)


def test_a_loop_in_a_helper_is_counted_for_the_values_that_it_gets() -> None:
    known = count("def f():\n    return steps(27), steps(97)\n", steps=COLLATZ)
    assert known.likely == 111 + 118


def test_a_loop_inside_a_long_one_is_counted_from_a_sample() -> None:
    known = count("def f():\n    for n in range(1, 100_000):\n        steps(n)\n", steps=COLLATZ)
    # 10,853,710 in fact.
    assert 5e6 < known.likely < 2e7
    assert known.least < 10_853_710 < known.most


def test_with_other_arguments_it_may_run_less() -> None:
    body = "    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n        time.sleep(1)\n"
    known = count(f"def f(n=27):\n{body}")
    assert known.least == 0
    assert known.likely == 111
    assert known.most >= 222


def test_an_argument_without_default_is_no_input_of_the_text() -> None:
    facts = facts_of("def f(n):\n    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n")
    assert facts.unknown_sizes == 1


def test_a_condition_that_depends_on_what_was_built_is_counted() -> None:
    text = """
def f():
    seen = []
    for word in "to be or not to be that is the question".split():
        if word in seen:
            time.sleep(1)
        seen.append(word)
"""
    assert count(text).likely == 2


def test_the_calls_of_a_search_are_counted() -> None:
    text = """
def f():
    def place(row, columns, left, right):
        time.sleep(1)
        if row == 5:
            return 1
        total = 0
        for column in range(5):
            if column not in columns and row + column not in left and row - column not in right:
                total += place(row + 1, columns | {column}, left | {row + column}, right | {row - column})
        return total
    return place(0, frozenset(), frozenset(), frozenset())
"""
    known = count(text)
    assert (known.least, known.likely, known.most) == (54, 54, 54)


def test_a_loop_that_goes_on_when_the_budget_is_spent_runs_at_least_so_often() -> None:
    text = """
def f():
    x = 12345
    while x % 1_000_003 != 7:
        x = (x * 48271) % 2147483647
        time.sleep(1)
"""
    known = count(text)
    assert known.least > 500
    assert known.most > 10 * known.least


def test_what_a_sample_leaves_out_is_not_walked_through() -> None:
    text = """
def f():
    head = None
    for i in range(100_000):
        head = (i, head)
    while head:
        head = head[1]
        time.sleep(1)
"""
    facts = facts_of(text)
    assert facts.unknown_sizes == 1


def test_a_program_that_reads_its_input_is_not_counted() -> None:
    facts = facts_of("n = int(input())\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\n")
    assert facts.unknown_sizes == 1


def test_a_program_that_fails_keeps_what_was_counted() -> None:
    body = "    while n != 1:\n        n = n // 2 if n % 2 == 0 else 3 * n + 1\n        time.sleep(1)\n"
    assert count(f"def f():\n    n = 27\n{body}    return [][n]\n").likely == 111


def test_a_loop_whose_end_is_out_of_reach_is_counted_at_the_pace_so_far() -> None:
    text = """
def f():
    primes = []
    n = 2
    while len(primes) < 1_500:
        if all(n % p for p in primes):
            primes.append(n)
        n += 1
        time.sleep(1)
"""
    known = count(text)
    # 12,552 in fact.
    assert 6_000 < known.likely < 25_000
    assert known.least < 12_552 < known.most


def test_a_loop_over_days_is_counted() -> None:
    text = """
def f():
    day = datetime.date(2024, 1, 1)
    while day < datetime.date(2024, 3, 1):
        day += datetime.timedelta(days=1)
        time.sleep(1)
"""
    assert count(text).likely == 60


def test_a_generator_as_a_unit_is_not_tried() -> None:
    facts = facts_of(
        "def f():\n    n = 27\n    while n != 1:\n        n = g(n)\n        yield n\n", g="def g(n):\n    return n // 2"
    )
    assert facts.unknown_sizes == 1


def test_a_search_with_exits_is_counted_by_how_far_its_loop_has_got() -> None:
    text = """
def f():
    cols, down, up = set(), set(), set()

    def place(row):
        time.sleep(1)
        if row == 8:
            return 1
        found = 0
        for col in range(8):
            if col in cols or row - col in down or row + col in up:
                continue
            cols.add(col)
            down.add(row - col)
            up.add(row + col)
            found += place(row + 1)
            cols.remove(col)
            down.remove(row - col)
            up.remove(row + col)
        return found

    return place(0)
"""
    known = count(text)
    assert 2057 / 2 < known.likely < 2 * 2057
    assert known.most < 10 * 2057


def test_an_inner_loop_that_reads_what_was_stored_goes_on_as_it_began() -> None:
    text = """
def f():
    items = [i * 7919 % 1009 for i in range(400)]
    for i in range(1, len(items)):
        item, j = items[i], i - 1
        while j >= 0 and items[j] > item:
            time.sleep(1)
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = item
"""
    expected = sum(a > b for at, b in enumerate(ITEMS) for a in ITEMS[:at])
    assert expected / 1.5 < count(text).likely < 1.5 * expected


ITEMS = [i * 7919 % 1009 for i in range(400)]


def test_handlers_and_cases_are_entered_as_often_as_in_a_trial() -> None:
    text = """
def f():
    for text in ("1", "x", "3", "y", "5", "z"):
        try:
            int(text)
        except ValueError:
            time.sleep(1)
    for item in (1, "a", [1, 2], None, 2, 3):
        match item:
            case int():
                time.sleep(10)
            case [_, _]:
                time.sleep(100)
"""
    assert count(text).likely == pytest.approx(3 + 30 + 100)


def test_the_second_part_of_a_condition_is_evaluated_as_often_as_in_a_trial() -> None:
    text = """
def f():
    for i in range(100):
        found = i % 10 == 0 and wait()
"""
    known = count(text, wait="\ndef wait():\n    time.sleep(1)\n    return True\n")
    assert (known.least, known.likely, known.most) == (10, 10, 10)


def test_what_is_new_in_a_set_is_what_a_trial_saw() -> None:
    facts = facts_of("def f():\n    seen = set()\n    for i in range(2000):\n        seen.add(i * i % 101)\n")
    assert facts.memory.known.likely < 10_000


def test_large_numbers_cost_what_their_digits_do() -> None:
    small = facts_of("def f():\n    n = 1\n    for i in range(300):\n        n |= 1 << 5\n    return n\n")
    large = facts_of("def f():\n    n = 1\n    for i in range(300):\n        n |= n << i % 1000\n    return n\n")
    assert large.latency.known.likely > 5 * small.latency.known.likely
