"""Waits in loops: each item of an input waits, or it does not."""

from __future__ import annotations

import textwrap

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.scope import Texts
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import LoopWait, WaitKind


def _loop_waits(text: str, **functions: str) -> tuple[LoopWait, ...]:
    facts = work_facts(textwrap.dedent(text).lstrip(), Texts(dict(functions)))
    assert facts is not None
    return facts.loop_waits


def test_a_wait_of_each_item_names_the_call_and_what_the_loop_runs_over() -> None:
    text = """
    def f(urls):
        import requests
        pages = []
        for url in urls:
            pages.append(requests.get(url))
        return pages
    """
    assert _loop_waits(text) == (LoopWait(WaitKind.NETWORK, 4, "requests.get", "urls"),)


@pytest.mark.parametrize(
    ("body", "over"),
    [
        ("[Order.objects.get(pk=key) for key in keys]", "keys"),
        ("for number, key in enumerate(sorted(keys)):\n        Order.objects.get(pk=key)", "keys"),
        ("for key, value in table.items():\n        cursor.execute(key, value)", "table"),
        (
            "for user in users:\n        for order in Order.objects.filter(user=user):\n            print(order)",
            "users",
        ),
        ("for user in users:\n        orders = list(Order.objects.filter(user=user))", "users"),
        ("query = db.query(User)\n    for key in keys:\n        query.filter_by(id=key).first()", "keys"),
        ("for user in users:\n        user.save()\n        if user.last:\n            break", "users"),
        ("for attempt in range(count):\n        cursor.execute(sql)", "range(count)"),
        ("for item in items:\n        if item.old:\n            session.commit()", "items"),
    ],
)
def test_a_loop_that_waits(body: str, over: str) -> None:
    found = _loop_waits(f"def f(keys, users, items, table, count, cursor, session, db, sql):\n    {body}\n")
    assert [wait.over for wait in found] == [over]
    assert {wait.kind for wait in found} == {WaitKind.DATABASE}


@pytest.mark.parametrize(
    "body",
    [
        "for key in (1, 2):\n        cursor.execute(key)",
        "for line in sys.stdin:\n        cursor.execute(line)",
        "started = [subprocess.Popen(key) for key in keys]\n    for one in started:\n        one.wait()",
        "for key in keys:\n        with multiprocessing.Pool() as pool:\n            pool.map(len, key)",
        "for key in keys:\n        rows = list(filter(None, key))\n        print(len(rows))",
        "for key in KEYS:\n        cursor.execute(key)",
        "for row in cursor.execute(sql):\n        print(row)",
        "for user in users:\n        session.add(user)\n    session.commit()",
        "for attempt in range(count):\n        try:\n            return session.get(url)\n        except OSError:\n"
        "            continue",
        "for start in range(0, count, 100):\n        cursor.execute(sql)",
        "for batch in batches:\n        cursor.executemany(sql, batch)",
        "for user in users:\n        rows.append(user)\n        if len(rows) >= 100:\n            session.commit()",
        "for number, user in enumerate(users):\n        if number % 100 == 0:\n            session.commit()",
        "for user in users:\n        if user.name == name:\n            user.save()\n            break",
        "while True:\n        session.commit()",
        "for user in users:\n        settings.get(user)",
    ],
)
def test_a_loop_that_does_not_wait_for_each_item_of_an_input(body: str) -> None:
    names = "users, rows, batches, count, cursor, session, sql, name, settings, url"
    assert _loop_waits(f"def f({names}):\n    {body}\n") == ()


def test_a_wait_in_a_function_of_the_program_is_found_where_it_is_called() -> None:
    helper = "def load(key):\n    import requests\n    return requests.get(key).json()\n"
    text = "def f(keys):\n    return [load(key) for key in keys]\n"
    assert _loop_waits(text, load=helper) == (LoopWait(WaitKind.NETWORK, 1, "requests.get", "keys"),)


def test_a_loop_in_a_called_function_is_not_one_of_the_caller() -> None:
    helper = "def load(keys):\n    import requests\n    for key in keys:\n        requests.get(key)\n"
    assert _loop_waits("def f(keys):\n    load(keys)\n", load=helper) == ()


def test_coroutines_that_run_at_the_same_time_are_not_waits_of_a_loop() -> None:
    text = """
    async def f(session, urls):
        tasks = []
        for url in urls:
            tasks.append(session.post(url))
        return await asyncio.gather(*tasks, *(session.get(url) for url in urls))
    """
    assert _loop_waits(text) == ()


def test_a_coroutine_that_awaits_each_item_waits_in_its_loop() -> None:
    text = """
    async def f(session, urls):
        for url in urls:
            await session.post(url)
    """
    [wait] = _loop_waits(text)
    assert (wait.kind, wait.line, wait.over, wait.is_awaited) == (WaitKind.NETWORK, 2, "urls", True)


def test_what_is_known_by_its_name_only_is_a_wait_in_loops_only() -> None:
    facts = work_facts("def f(users):\n    for user in users:\n        user.save()\n")
    assert facts is not None
    assert facts.waits == ()
    assert [wait.call for wait in facts.loop_waits] == ["user.save"]


_MODELS = """
from django.db import models
from sqlalchemy.orm import relationship

class Order(models.Model):
    customer = models.ForeignKey("Customer", on_delete=models.CASCADE)
    created = models.DateTimeField()

class Book(Base):
    author = relationship("Author")

"""


def _relations(body: str) -> list[tuple[str, str]]:
    text = f"{_MODELS}\ndef f(session):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    assert unit.code.work is not None
    return [(wait.call, wait.loaded_by) for wait in unit.code.work.loop_waits]


@pytest.mark.parametrize(
    ("query", "attribute", "expected"),
    [
        ("Order.objects.filter(paid=True)", "customer.name", [("row.customer", "select_related")]),
        ("Order.objects.select_related('customer')", "customer.name", []),
        ("Order.objects.select_related('customer__address')", "customer.name", []),
        ("Order.objects.all()", "created.year", []),
        ("Order.objects.all()", "customer", []),
        ("session.query(Book)", "author.name", [("row.author", "joinedload")]),
        ("session.query(Book).options(joinedload(Book.author))", "author.name", []),
        ("session.query(Unknown)", "author.name", []),
    ],
)
def test_a_related_row_that_the_query_does_not_read_waits_for_each_item(
    query: str, attribute: str, expected: list[tuple[str, str]]
) -> None:
    assert _relations(f"for row in {query}:\n    print(row.{attribute})") == expected
    assert _relations(f"rows = {query}\nfor row in rows:\n    print(row.{attribute})") == expected


@pytest.mark.parametrize(
    ("imports", "waits"), [("from shop.models import User", 1), ("from django.db import models", 1), ("import ast", 0)]
)
def test_a_method_alone_is_a_wait_where_the_file_works_with_a_database(imports: str, waits: int) -> None:
    text = f"{imports}\n\ndef f(users):\n    for user in users:\n        user.delete()\n"
    [unit] = [unit for unit in Analyser().analyse(ParsedSource(text.encode(), "python")) if unit.unit.qualname == "f"]
    assert unit.code.work is not None
    assert len(unit.code.work.loop_waits) == waits
