"""Trip counts of loops: against programs that run and are counted, and for the loops that people write."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.types import Amount, CauseKind

from ..counting import TooLongError, count, counted, facts_of, ran
from ..programs import programs

SLEEP = "time.sleep(1)"


def function(*lines: str, arguments: str = "") -> str:
    """A function with these lines."""
    return f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in lines)


@settings(max_examples=150)
@given(programs())
def test_the_interval_of_a_loop_contains_what_running_it_counts(text: str) -> None:
    try:
        true = ran(text)
    except TooLongError:
        assume(False)
    facts = work_facts(text)
    assume(facts is not None and len(facts.waits) < 8)
    assert facts is not None
    known = counted(facts)
    assert facts.endless is None
    if not facts.unknown_sizes:
        assert known.least - 1e-6 <= true <= known.most * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (("for i in range(10_000_000):", f"    {SLEEP}"), 10_000_000),
        (("i = 0", "while i <= 1_000_000:", f"    {SLEEP}", "    i += 1"), 1_000_001),
        (("i = 10", "while i:", f"    {SLEEP}", "    i -= 1"), 10),
        (("i = 10", "while 0 != i:", f"    {SLEEP}", "    i = i - 2"), 5),
        (("n = 10**12", "while n > 0:", f"    {SLEEP}", "    n //= 10"), 13),
        (("n = 1 << 40", "while n > 1:", f"    {SLEEP}", "    n >>= 2"), 20),
        (("x = 1.0", "while x > 1e-6:", f"    {SLEEP}", "    x /= 2"), 20),
        (("x = 0.0", "while x < 1.0:", f"    {SLEEP}", "    x += 0.1"), 11),
        (("i = 0", "j = 100", "while i < 10 and j > 40:", f"    {SLEEP}", "    i += 1", "    j -= 20"), 3),
        (("n = 27", "while n != 1:", f"    {SLEEP}", "    n = n // 2 if n % 2 == 0 else 3 * n + 1"), 111),
    ],
)
def test_loops_over_literals_are_exact(lines: tuple[str, ...], times: int) -> None:
    known = count(function(*lines))
    assert known.likely == pytest.approx(times)
    assert known.least == pytest.approx(known.most)


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (("n = 0", "while True:", "    n += 1", "    if n == 10:", "        break", f"    {SLEEP}"), 9),
        (("n = 0", "while True:", f"    {SLEEP}", "    n += 1", "    if n == 10:", "        return n"), 10),
        (("n = 100", "while 1:", "    n -= 7", "    if 0 >= n:", "        break", f"    {SLEEP}"), 14),
        (("n = 0", "while n < 50:", f"    {SLEEP}", "    n += 1", "    if n == 10:", "        break"), 10),
        (("for i in range(1_000_000):", "    if i == 1000:", "        break", f"    {SLEEP}"), 1000),
        (("for i in itertools.count():", "    if i == 10:", "        break", f"    {SLEEP}"), 10),
    ],
)
def test_a_loop_that_a_statement_leaves_has_a_range(lines: tuple[str, ...], times: int) -> None:
    facts = facts_of(function(*lines))
    assert facts.endless is None
    known = counted(facts)
    assert facts.unknown_sizes or known.least <= times <= known.most


def test_an_else_runs_unless_the_loop_breaks() -> None:
    unsure = count(
        function("for i in items:", "    if i:", "        break", "else:", f"    {SLEEP}", arguments="items")
    )
    assert (unsure.least, unsure.most) == (0, 1)
    assert count(function("while 0:", "    pass", "else:", f"    {SLEEP}")).least == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("while True:", "    pass"),
        ("n = 0", "while n != 10:", "    n += 3"),
        ("n = 0", "while n < 10:", "    n -= 1"),
        ("n = 5", "while n >= 0:", "    n //= 2"),
        ("n = 5", "while n > 0:", "    x = n"),
        ("for i in itertools.count():", "    pass"),
        ("for i in itertools.cycle([1, 2]):", "    print(i)"),
        ("for i in map(str, itertools.count()):", "    print(i)"),
        ("for i in (n * n for n in itertools.count()):", "    print(i)"),
        ("total = sum(itertools.count())",),
        ("items = list(itertools.repeat(1))",),
    ],
)
def test_loops_that_cannot_end_are_found(lines: tuple[str, ...]) -> None:
    assert facts_of(function(*lines)).endless == next(
        number for number, line in enumerate(lines, 1) if line.startswith(("while", "for", "total", "items"))
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("while True:", "    if items.pop():", "        break"),
        ("while True:", "    item = next(items)"),
        ("while True:", "    if not items:", "        raise ValueError"),
        ("n = 0", "while n != 10:", "    n += 3", "    if items:", "        return"),
        ("for i in itertools.count():", "    if items[i]:", "        break"),
        ("unknown(itertools.count())",),
        ("unknown.method(itertools.cycle(items))",),
        ("unknown(map(str, itertools.count()))",),
        ("unknown(n * n for n in itertools.count())",),
        ("def forever():", "    while True:", "        yield 1", "unknown(forever())"),
        ("for i, item in zip(itertools.count(), items):", "    pass"),
        ("for item, i in zip(items, map(str, itertools.count())):", "    pass"),
        ("first = next(i for i in itertools.count() if i > items)",),
        ("found = any(i > items for i in itertools.count())",),
        ("part = list(itertools.repeat(0, items.count_of()))",),
        ("part = list(itertools.islice(itertools.count(), 10))",),
        ("part = list(itertools.islice(map(str, itertools.count()), 10))",),
        ("try:", "    while True:", "        items.pop()", "except IndexError:", "    pass"),
        ("pop = items.pop", "while items:", "    pop()"),
        (
            "def taken():",
            "    try:",
            "        while True:",
            "            yield items.pop()",
            "    except IndexError:",
            "        pass",
            "for item in taken():",
            "    pass",
        ),
        # Pages until one has no next, which a generator yields.
        (
            "def pages():",
            "    for number in itertools.count(1):",
            "        page = unknown(number)",
            "        yield page",
            "        if not page.has_next:",
            "            break",
            "for page in pages():",
            "    print(page)",
        ),
        (
            "def pages():",
            "    for number in itertools.count():",
            "        if number in items:",
            "            return",
            "        yield number",
            "list(pages())",
        ),
    ],
)
def test_loops_that_may_end_are_not_called_endless(lines: tuple[str, ...]) -> None:
    assert facts_of(function(*lines, arguments="items")).endless is None


def test_what_an_item_of_an_endless_iterator_costs_is_kept() -> None:
    lines = ("def forever():", "    while True:", f"        {SLEEP}", "        yield 1")
    assert count(function(*lines, "next(forever())")) == Amount(1, 1, 1)
    assert count(function(*lines, "unknown(forever())")) == Amount()
    first = facts_of(function("return next(i for i in itertools.count() if unknown(i))"))
    assert first.unknown_calls == pytest.approx(1)


def test_a_guard_in_a_loop_does_not_hide_its_work() -> None:
    known = count(function("for i in range(1000):", "    if bad(i):", "        raise ValueError", f"    {SLEEP}"))
    assert 900 <= known.likely <= 1000


@pytest.mark.parametrize(
    ("lines", "growth"),
    [
        (("for i in range(n):", "    x = i"), {"n": (1, 0)}),
        (("i = 0", "while i < n:", "    i += 1"), {"n": (1, 0)}),
        (("i = 1", "while i < n:", "    i *= 2"), {"n": (0, 1)}),
        (("while n > 1:", "    n //= 3"), {"n": (0, 1)}),
        (("i = 2", "while i * i <= n:", "    i += 1"), {"n": (0.5, 0)}),
        (("i = 2", "while i ** 2 <= n:", "    i += 1"), {"n": (0.5, 0)}),
        (("for i in range(2, int(n ** 0.5) + 1):", "    x = i"), {"n": (0.5, 0)}),
        (("for i in range(2, math.isqrt(n) + 1):", "    x = i"), {"n": (0.5, 0)}),
        (("for i in range(n):", "    for j in range(i):", "        x = j"), {"n": (2, 0)}),
        (("for i in range(n):", "    for j in range(m):", "        x = j"), {"m": (1, 0), "n": (1, 0)}),
        (("low = 0", "while low < n:", "    middle = (low + n) // 2", "    if bad:", "        low = middle + 1",
          "    else:", "        n = middle"), {"n": (0, 1)}),
    ],
)  # fmt: skip
def test_loops_grow_with_their_bounds(lines: tuple[str, ...], growth: dict[str, tuple[float, float]]) -> None:
    facts = facts_of(function(*lines, arguments="n, m, bad"))
    assert {entry.size: (entry.degree, entry.logs) for entry in facts.latency.growth} == growth


def test_a_loop_is_a_cause_with_its_count() -> None:
    facts = facts_of(function("for i in range(100_000):", "    x = i * i"))
    [cause] = [cause for cause in facts.latency.causes if cause.kind is CauseKind.LOOP]
    assert (cause.line, cause.name, cause.count) == (1, "range(100000)", 100_000)
    assert 0.5 < cause.amount / facts.latency.known.likely <= 1


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_more_trips_never_take_less(trips: int, more: int) -> None:
    short, long = (
        facts_of(function(f"for i in range({number}):", "    x = i")).latency.known for number in (trips, trips + more)
    )
    assert short.least <= long.least
    assert short.likely <= long.likely


@settings(max_examples=50)
@given(st.integers(0, 400), st.integers(1, 9))
def test_a_list_that_a_loop_fills_has_its_size(trips: int, step: int) -> None:
    known = count(
        function(
            "items = []",
            f"for i in range(0, {trips}, {step}):",
            "    items.append(i)",
            "for item in items:",
            f"    {SLEEP}",
        ),
    )
    assert known.least == known.most == len(range(0, trips, step))


@pytest.mark.parametrize(
    ("lines", "times"),
    [
        (("total = 0", "for i in range(30):", "    for j in range(total):", f"        {SLEEP}", "    total += 1"), 435),
        (("i = 0", "for k in range(30):", "    while i < 100:", f"        {SLEEP}", "        i += 1"), 100),
        (("n = 5", "for k in range(30):", "    for j in range(n):", f"        {SLEEP}", "    n = 3"), 92),
        (("items = [0]", "for k in range(30):", "    for j in items:", f"        {SLEEP}", "    items.append(k)"), 465),
    ],
)
def test_what_a_loop_carries_from_trip_to_trip_is_a_range(lines: tuple[str, ...], times: int) -> None:
    known = count(function(*lines))
    assert known.least <= times <= known.most
    assert known.least < known.most


def test_a_short_loop_without_calls_is_read_trip_by_trip() -> None:
    # The list doubles in each of 14 trips.
    lines = ("result = [[]]", "for x in range(14):", "    result += [s + [x] for s in result]", "for s in result:")
    known = count(function(*lines, f"    {SLEEP}"))
    assert known.least == known.most == 2**14


def degrees(text: str) -> set[float]:
    """The degrees of the terms of a function's latency, over all sizes but those of items."""
    facts = work_facts(text)
    assert facts is not None
    return {sum(one.degree for one in term.factors if one.size != "item") for term in facts.latency.terms}


@pytest.mark.parametrize(
    ("start", "change", "degree"),
    [
        ("()", "x += (item,)", 2),
        ("()", "x = x + (item,)", 2),
        ("b''", "x += item", 2),
        ("''", "x = item + x", 2),
        ("set()", "x = x | {item}", 2),
        ("{}", "x = {**x, item: 1}", 2),
        ("[]", "x = [*x, item]", 2),
        ("np.array([])", "x = np.append(x, item)", 2),
        ("np.array([])", "x = np.concatenate([x, item])", 2),
        ("pd.DataFrame()", "x = pd.concat([x, item])", 2),
        ("[]", "x += [item]", 1),
        ("set()", "x |= {item}", 1),
        ("''", "x += item", 1),
        ("bytearray()", "x += item", 1),
        # Made of one item, and of nothing that the loop made.
        ("[]", "x = [item]", 1),
    ],
)
def test_a_copy_of_what_a_loop_grows_costs_its_size(start: str, change: str, degree: int) -> None:
    text = function(
        "import numpy as np", "import pandas as pd", f"x = {start}", "for item in items:", f"    {change}",
        arguments="items",
    )  # fmt: skip
    assert max(degrees(text)) == degree


def test_a_copy_of_what_a_loop_shrinks_by_a_number_costs_its_size() -> None:
    assert max(degrees(function("for _ in range(len(x)):", "    x = x[1:]", arguments="x"))) == 2


def test_parts_of_parts_are_not_steps() -> None:
    changed = function("y = str(x)", "for i in x:", "    y = y.replace(i, '/')", arguments="x")
    assert max(degrees(changed)) == 1
    assert max(degrees(function("for _ in range(9):", "    x = [i for i in x if i]", arguments="x"))) == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("kept = []", "for x in items:", "    if x not in kept:", "        kept.append(x)"), True),
        (("kept = []", "for x in items:", "    if x in kept:", "        raise ValueError", "    kept.append(x)"), True),
        (("kept = set()", "for x in items:", "    if x not in kept:", "        kept.add(x)"), False),
    ],
)
def test_a_list_of_what_is_new_gets_a_share_of_the_items_at_least(lines: tuple[str, ...], *, expected: bool) -> None:
    facts = work_facts("def f(items):\n" + "".join(f"    {line}\n" for line in lines))
    assert facts is not None
    squares = [term for term in facts.latency.terms if sum(factor.degree for factor in term.factors) == 2]
    assert any(term.least > 0 for term in squares) is expected


def test_a_name_that_begins_as_none_is_like_something_empty() -> None:
    text = "def f(lists):\n    all = None\n    for items in lists:\n        part = list(items)\n"
    grown = work_facts(text + "        all = part if all is None else all + part\n    return all\n")
    assert grown is not None
    assert ("lists", 2.0) in {(factor.size, factor.degree) for factor in grown.latency.growth}


def test_a_product_that_a_loop_builds_gets_more_digits() -> None:
    facts = work_facts("def f(n: int):\n    product = 1\n    for i in range(1, n):\n        product *= i\n")
    assert facts is not None
    assert [(factor.size, factor.degree) for factor in facts.latency.growth] == [("n", 2.0)]
    sign = work_facts("def f(n: int):\n    sign = 1\n    for i in range(1, n):\n        sign *= -1\n")
    assert sign is not None
    assert [factor.degree for factor in sign.latency.growth] == [1.0]


def test_the_exit_that_ends_a_loop_after_all_items_hides_none_of_its_work() -> None:
    text = "def f(n: int):\n    i = 0\n    while True:\n        if i >= n:\n            break\n        i += 1\n"
    facts = work_facts(text)
    assert facts is not None
    [term] = [term for term in facts.latency.terms if term.factors]
    assert term.least == term.likely > 0


@pytest.mark.parametrize(
    "step",
    [
        "hashlib.sha256(data).digest()",
        "hashlib.sha256(data + salt).digest()",
        "hmac.new(salt, data, 'sha256').digest()",
        "hashlib.md5(data).hexdigest().encode()",
    ],
)
def test_a_digest_of_a_digest_is_as_long_as_the_first(step: str) -> None:
    def likely(rounds: int) -> float:
        lines = ("data, salt = b'', b'salt'", f"for _ in range({rounds}):", f"    data = {step}", "return data")
        return facts_of(function(*lines)).latency.typical

    assert likely(100_000) == pytest.approx(1_000 * likely(100), rel=0.1)
