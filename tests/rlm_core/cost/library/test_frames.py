"""Tables and columns: what operations return, what they cost at least, and how the text shows that there is one."""

from __future__ import annotations

import pytest
from rlm_core.cost.domain.quantities import constant, of_size
from rlm_core.cost.domain.values import Value
from rlm_core.cost.library.unit_costs import table

from tests.rlm_core.cost.counting import facts_of
from tests.rlm_core.cost.evaluating import evaluated

ROWS = of_size("d")
FRAME = Value("object", name="pandas.DataFrame", size=ROWS)


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("d['a']", "pandas.Series"),
        ("d.a", "pandas.Series"),
        ("d[['a', 'b']]", "pandas.DataFrame"),
        ("d[d.a > 1]", "pandas.DataFrame"),
        ("d[2:5]", "pandas.DataFrame"),
        ("d.loc[d.a > 1, 'b']", "pandas.Series"),
        ("d.loc[d.a > 1]", "pandas.DataFrame"),
        ("d.iloc[:5]", "pandas.DataFrame"),
        ("d.a[d.a > 1]", "pandas.Series"),
        ("d.a * 2", "pandas.Series"),
        ("2 * d.a", "pandas.Series"),
        ("-d.a", "pandas.Series"),
        ("d.a == d.b", "pandas.Series"),
        ("1 < d.a", "pandas.Series"),
        ("~(d.a.isnull() & d.b.isin([1]))", "pandas.Series"),
        ("d.groupby('a')", "pandas.GroupBy"),
        ("d.groupby('a')['b']", "pandas.SeriesGroupBy"),
        ("d.groupby('a').b.sum()", "pandas.Series"),
        ("d.groupby('a').sum()", "pandas.DataFrame"),
        ("d.groupby('a').agg({'b': 'sum'}).reset_index()", "pandas.DataFrame"),
        ("d.apply(lambda row: row['a'], axis=1)", "pandas.Series"),
        ("d.apply(sum)", "pandas.DataFrame"),
        ("d.a.map(str).fillna('')", "pandas.Series"),
        ("d.a.str.lower().str.split()", "pandas.Series"),
        ("d.merge(d, on='a').sort_values('a').head()", "pandas.DataFrame"),
        ("d.sum()", "pandas.Series"),
        ("d.columns", "pandas.Index"),
    ],
)
def test_operations_on_tables_have_tables_and_columns_as_results(expression: str, type_: str) -> None:
    value = evaluated(expression, d=FRAME)
    assert (value.kind, value.name) == ("object", type_)


@pytest.mark.parametrize(
    "expression", ["d.copy()", "d.a + 1", "d['a'].fillna(0)", "d.drop(columns='a')", "d.loc[:, ['a']]"]
)
def test_what_keeps_all_rows_has_the_size_of_the_table(expression: str) -> None:
    assert evaluated(expression, d=FRAME).size == ROWS


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        ("pd.DataFrame({'a': [1, 2, 3], 'b': [4, 5, 6]})", 3),
        ("pd.DataFrame([{'a': 1}, {'a': 2}])", 2),
        ("pd.Series([1, 2, 3, 4])", 4),
        ("pd.concat([pd.Series([1, 2]), pd.Series([3])])", 3),
        ("pd.concat([pd.Series([1, 2]), pd.Series([3, 4])], axis=1)", 2),
        ("pd.date_range('2020', periods=7)", 7),
    ],
)
def test_a_constructor_says_how_many_rows_there_are(made: str, rows: int) -> None:
    size = evaluated(made, pd=Value("module", name="pandas")).size
    assert size is not None
    assert size.exact == rows


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        # Measured on three rows, with the caches of a program that does other things: 271, 2500, 115 and 96 µs.
        ("df.apply(lambda r: r['a'] + r['b'], axis=1).sum()", 1e-4),
        ("df.groupby('k').agg(['sum', 'mean'])", 5e-4),
        ("(df.price * df.qty).sum()", 2e-5),
        ("(x - x.mean(0)) / x.std(0)", 5e-6),
    ],
)
def test_an_operation_on_a_table_is_not_cheap(body: str, seconds: float) -> None:
    known = facts_of(f"def f(df, x):\n    return {body}\n").latency.known
    assert known.least >= seconds


def test_what_is_applied_to_each_row_is_paid_for_each_row() -> None:
    cheap, dear = (
        facts_of(f"def f(df):\n    return df.apply(lambda row: {body}, axis=1)\n").latency
        for body in ("row['a']", "sorted(range(1000))")
    )
    assert [entry.size for entry in dear.growth] == ["df"]
    assert dear.large > 2 * cheap.large


@pytest.mark.parametrize(
    "text",
    [
        "def f(df):\n    return df.total\n",
        "def f(sales_df):\n    return sales_df.total\n",
        "import pandas as pd\n\ndef f(a: pd.DataFrame):\n    return a.total\n",
        "def f(a):\n    a.groupby('x')\n    return a.total\n",
        "def f(a):\n    a.keys()\n    a.append(a)\n    a.reset_index()\n    return a.total\n",
        "def f(a):\n    a.iloc[0]\n    return a.total\n",
    ],
)
def test_the_text_shows_that_a_parameter_is_a_table(text: str) -> None:
    assert not facts_of(text).opaque


def test_methods_that_no_type_has_all_of_show_no_type() -> None:
    facts = facts_of("def f(a):\n    a.splitlines()\n    a.iterrows()\n    return a.total\n")
    assert ".total" in dict(facts.unknown)


def test_a_method_that_no_entry_describes_is_an_unknown_call() -> None:
    facts = facts_of("def f(df):\n    return df.to_unheard_of_format()\n")
    assert dict(facts.unknown) == {"df.to_unheard_of_format()": 1.0}


def test_every_cost_of_a_library_is_measured() -> None:
    unmeasured = {name for name, cost in table().items() if not (cost.fixed or cost.each)}
    assert not unmeasured


def test_what_a_call_of_a_library_costs_is_a_range() -> None:
    known = facts_of("def f(df):\n    return df.describe()\n").latency.known
    assert known.least < known.likely < known.most


def test_an_attribute_of_an_object_of_unknown_size_has_none() -> None:
    facts = facts_of("def f(x: torch.Tensor):\n    return x.T.sum()\n")
    assert facts.latency.known.likely > 0


def test_a_pool_that_starts_a_call_waits_for_no_network() -> None:
    assert not facts_of("def f(pool, work):\n    return pool.apply_async(work)\n").waits


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("pd.DataFrame([{'a': 1, 'b': 2.0, 'c': 'x'} for i in range(1000)])", 3),
        ("pd.DataFrame([(1, 2) for i in range(1000)])", 2),
        ("pd.DataFrame({'a': [1] * 1000, 'b': [2] * 1000})", 2),
        ("pd.DataFrame(rows, columns=['a', 'b', 'c', 'd', 'e'])", 5),
    ],
)
def test_a_table_holds_a_value_per_row_and_column(expression: str, columns: int) -> None:
    rows = Value("list", size=constant(1000.0))
    value = evaluated(expression, pd=Value("module", name="pandas"), rows=rows)
    assert value.name == "pandas.DataFrame"
    assert value.bytes.constant is not None
    assert value.bytes.constant[1] == pytest.approx(8 * 1000 * columns)
