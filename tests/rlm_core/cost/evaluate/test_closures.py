"""Containers that nested functions fill."""

from __future__ import annotations

from ..counting import count, facts_of


def test_what_a_nested_function_appends_is_in_the_list_afterwards() -> None:
    text = """
def f():
    found = []
    def put(n):
        found.append(n)
    for n in range(40):
        put(n)
    for item in found:
        time.sleep(1)
"""
    known = count(text)
    assert (known.least, known.most) == (40, 40)


def test_a_list_of_the_nested_function_itself_is_another_one() -> None:
    text = """
def f():
    found = []
    def put(n):
        found = []
        found.append(n)
    for n in range(40):
        put(n)
    for item in found:
        time.sleep(1)
"""
    assert count(text).most == 0


def test_the_memory_of_what_is_put_in_is_held() -> None:
    text = """
def f():
    found = []
    def put(n):
        found.append("x" * n)
    for n in range({count}):
        put(1000)
"""
    few, many = (facts_of(text.format(count=count)).memory.known.likely for count in (100, 1000))
    assert 9 < many / few < 11
