"""The places that make a cost grow: the innermost syntax, the loops around it, and what usually cures it."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.types import CostOrigin, Cure


def origins(text: str) -> tuple[CostOrigin, ...]:
    work = work_facts(text)
    assert work is not None
    return work.latency.origins


@pytest.mark.parametrize(
    ("text", "line", "place", "loops", "cure"),
    [
        (
            "def f(rows):\n    seen = []\n    for row in rows:\n        if row in seen:\n            continue\n"
            "        seen.append(row)\n",
            3, "row in seen", ["for row in rows"], Cure.SET,
        ),
        (
            "def f(orders, payments):\n    found = []\n    for order in orders:\n        for payment in payments:\n"
            "            if payment.order == order.id:\n                found.append(payment)\n    return found\n",
            3, "for payment in payments", ["for order in orders"], Cure.LOOKUP,
        ),
        (
            "def f(xs: list[int]):\n    while xs:\n        print(xs.pop(0))\n",
            2, "xs.pop(0)", ["while xs"], Cure.DEQUE,
        ),
        (
            "def f(xs: list[int]):\n    return [xs.index(x) for x in xs]\n",
            1, "xs.index(x)", ["for x in xs"], Cure.DICT,
        ),
        (
            "def f(xs: list[int], ys: list[int]):\n    out = []\n    for x in xs:\n        out.append(x + max(ys))\n"
            "    return out\n",
            3, "max(ys)", ["for x in xs"], Cure.HOIST,
        ),
        (
            "def f(rows: list[int]):\n    out = []\n    for row in rows:\n        out = out + [row]\n    return out\n",
            3, "out + [row]", ["for row in rows"], Cure.EXTEND,
        ),
        (
            "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n",
            3, "fib(n - 1)", [], Cure.CACHE,
        ),
        (
            "def tree(n):\n    if n < 2:\n        return random.random()\n    return tree(n - 1) + tree(n - 2)\n",
            3, "tree(n - 1)", [], None,
        ),
        (
            "def f(xs, ys):\n    def inner(values):\n        return sum(value for value in values)\n"
            "    for x in xs:\n        inner(ys)\n",
            2, "for value in values", ["for x in xs"], None,
        ),
        (
            "def f(xs: list[int]):\n    for x in xs:\n        xs.insert(0, x + 1)\n",
            2, "xs.insert(0, x + 1)", ["for x in xs"], Cure.DEQUE,
        ),
    ],
)  # fmt: skip
def test_the_place_that_grows_is_named_with_its_loops_and_cure(
    text: str, line: int, place: str, loops: list[str], cure: Cure | None
) -> None:
    first = origins(text)[0]
    assert (first.place.line, first.place.text) == (line, place)
    assert [loop.text for loop in first.loops] == loops
    assert first.cure is cure


@pytest.mark.parametrize(
    "text",
    [
        "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n",
        "def f(xs):\n    return sorted(xs)\n",
        "def f(xs, ys: set[int]):\n    return [x for x in xs if x in ys]\n",
    ],
)
def test_what_grows_about_linearly_names_no_place(text: str) -> None:
    assert [origin for origin in origins(text) if origin.cure is not None] == []
    assert all(max(sum(factor.degree for factor in term.factors) for term in one.terms) <= 1 for one in origins(text))


@pytest.mark.parametrize(
    "body",
    [
        "ys.append(x)\n        print(max(ys))",  # the loop changes it
        "refresh(ys)\n        print(max(ys))",  # may change it
        "ys = x.values\n        print(max(ys))",  # binds it
        "print(max(ys, key=lambda y: y - x))",  # calls what is not known
        "print(max(y for y in ys if y < x))",  # reads what the loop binds
    ],
)
def test_work_that_may_differ_in_each_iteration_is_not_the_same(body: str) -> None:
    found = origins(f"def f(xs: list[int], ys: list[int]):\n    for x in xs:\n        {body}\n")
    assert Cure.HOIST not in [origin.cure for origin in found]


TABLES = [
    (
        "def f(df):\n    out = []\n    for i, row in df.iterrows():\n        out.append(row['a'])\n    return out\n",
        2, "for i, row in df.iterrows()", Cure.TUPLES,
    ),
    ("def f(df):\n    return [row['a'] for _, row in df.iterrows()]\n", 1, "for _, row in df.iterrows()", Cure.TUPLES),
    (
        "def f(df):\n    return df.apply(lambda row: row['a'] + row['b'], axis=1)\n",
        1, "df.apply(lambda row: row['a'] + row['b'], axis=1)", Cure.COLUMNS,
    ),
    (
        "def f(df):\n    total = 0\n    for i in range(len(df)):\n        total += df.iloc[i]['a']\n    return total\n",
        3, "df.iloc[i]", Cure.VALUES,
    ),
    (
        "def f(df):\n    for i in range(len(df)):\n        df.loc[i, 'b'] = i * 2\n",
        2, "df.loc[i, 'b'] = i * 2", Cure.COLUMN,
    ),
    (
        "def f(names):\n    table = pd.DataFrame()\n    for name in names:\n"
        "        table = pd.concat([table, pd.DataFrame({'a': [name]})])\n    return table\n",
        3, "pd.concat([table, pd.DataFrame({'a': [name]})])", Cure.CONCAT,
    ),
    (
        "def f(lines):\n    for line in lines:\n        re.compile('a+').match(line)\n",
        2, "re.compile('a+')", Cure.HOIST,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "place", "cure"), TABLES)
def test_what_costs_more_per_item_than_it_has_to_is_a_place_with_its_cure(
    text: str, line: int, place: str, cure: Cure
) -> None:
    found = [(one.place.line, one.place.text, one.cure) for one in origins(text) if one.cure is not None]
    assert (line, place, cure) in found


@pytest.mark.parametrize(
    "text",
    [
        "def f(df):\n    return df.apply(lambda column: column.max())\n",  # by columns
        "def f(df):\n    for row in df.itertuples():\n        print(row.a)\n",
        "def f(df):\n    return df.apply(lambda row: check(row), axis=1)\n",  # needs the row as a whole
        "def f(df, check):\n    return df.apply(check, axis=1)\n",  # may do anything
        "def f(df):\n    for i in range(len(df)):\n        row = df.iloc[i]\n        show(row)\n",
        "def f(df):\n    for i in range(len(df)):\n        show(df.iloc[i])\n",
        "def f(df):\n    for _, row in df.iterrows():\n        show(row)\n",  # passes the row on as a whole
        "def f(df):\n    for _, row in df.iterrows():\n        print(row.reset_index())\n",
        "def f(names, config):\n    for name in names:\n        load(name, dict(config))\n",  # may change its copy
        "def f(df, names):\n    for name in names:\n        print(df.loc[df.a == name, 'b'])\n",  # many rows
        "def f(df):\n    first = df.iloc[0]\n    return df.loc[3, 'a'], first\n",  # in no loop
        "def f(tables):\n    return pd.concat([one.head() for one in tables])\n",  # of all parts at once
        "def f(names):\n    for name in names:\n        pd.concat([load(name), other(name)])\n",  # of two parts each
        "def f(words, text):\n    for word in words:\n        re.compile(word).search(text)\n",  # of the item
    ],
)
def test_other_work_on_tables_and_patterns_has_no_cure(text: str) -> None:
    assert [one for one in origins(text) if one.cure is not None] == []


def test_places_add_up_to_the_steep_part_of_the_cost() -> None:
    searches = "x in ys\n        ys.index(x)\n        max(ys)\n"
    work = work_facts(f"def f(xs: list[int], ys: list[int]):\n    for x in xs:\n        {searches}")
    assert work is not None

    def steep(terms: tuple[object, ...]) -> float:
        return sum(term.likely for term in terms if sum(f.degree for f in term.factors) > 1)  # type: ignore[attr-defined]

    assert sum(steep(origin.terms) for origin in work.latency.origins) == pytest.approx(steep(work.latency.terms))
