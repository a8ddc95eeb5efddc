"""Calls that usually wait: what their names, and the names of what they are on, say."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.library.usual_waits import chain_of, is_by_method, is_query, usual_wait
from rlm_core.types import WaitKind


def _call(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def _wait(text: str, *, is_awaited: bool = False) -> WaitKind | None:
    call = _call(text)
    return usual_wait(call, chain_of(call.func), is_awaited=is_awaited)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("User.objects.filter(name=n).first()", WaitKind.DATABASE),
        ("User.objects.get(pk=1)", WaitKind.DATABASE),
        ("db_session.query(User).filter_by(a=1).one_or_none()", WaitKind.DATABASE),
        ("User.query.get(1)", WaitKind.DATABASE),
        ("self.session.commit()", WaitKind.DATABASE),
        ("session.get(User, 1)", WaitKind.DATABASE),
        ("cursor.execute(sql, (1,))", WaitKind.DATABASE),
        ("user.save()", WaitKind.DATABASE),
        ("super().save(*args, **kwargs)", WaitKind.DATABASE),
        ("users.get_by_name(db_session=db_session, name=n)", WaitKind.DATABASE),
        ("self.redis.get(key)", WaitKind.DATABASE),
        ("session.get(url)", WaitKind.NETWORK),
        ("self.http.post(address)", WaitKind.NETWORK),
        ("task.delay(user.id)", WaitKind.NETWORK),
        ("ec2.describe_images(ImageIds=ids)", WaitKind.NETWORK),
        ("service.accounts().list(account=a).execute()", WaitKind.NETWORK),
        ("shell.check_output(command)", WaitKind.PROCESS),
    ],
)
def test_what_a_call_usually_waits_for(call: str, kind: WaitKind) -> None:
    assert _wait(call) is kind


@pytest.mark.parametrize(
    "call",
    [
        "settings.get('name')",
        "session.get('name')",  # of a visitor
        "request.session.flush()",
        "session.add(user)",
        "User.objects.filter(name=n)",  # nobody reads it yet
        "db_session.query(User).filter_by(a=1)",
        "User.objects.get(pk=1).display_name()",
        "figure.save()",
        "filter(is_open, rows)",
        "list(filter(is_open, rows)).count(row)",
        "image.save(path)",
        "pool.apply_async(work, (1,))",
        "client.get_paginator('list_objects')",
        "config.update(other)",
        "channel.send(text)",  # not awaited
    ],
)
def test_calls_that_look_like_waits(call: str) -> None:
    assert _wait(call) is None


def test_a_message_that_is_awaited_goes_over_the_network() -> None:
    assert _wait("channel.send(text)", is_awaited=True) is WaitKind.NETWORK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User.objects.filter(a=1).order_by('b')", True),
        ("session.query(User).limit(5)", True),
        ("User.objects.filter(a=1).first()", False),
        ("users", False),
        ("users()", False),
    ],
)
def test_a_query_is_sent_by_what_reads_it(text: str, expected: bool) -> None:
    assert is_query(chain_of(ast.parse(text, mode="eval").body)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("user.save", True), ("self.rows[0].delete", True), ("User.objects.filter().delete", False), ("db.commit", False)],
)
def test_other_objects_than_rows_have_some_methods_too(text: str, expected: bool) -> None:
    assert is_by_method(chain_of(ast.parse(text, mode="eval").body)) is expected


def test_the_names_of_an_expression() -> None:
    text = "self.users()[0].orders.all"
    assert chain_of(ast.parse(text, mode="eval").body) == ("self", "users()", "[]", "orders", "all")
    assert chain_of(ast.parse("a + b", mode="eval").body) == ()
