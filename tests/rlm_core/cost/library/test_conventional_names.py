"""What names say of objects whose type nothing else shows."""

from __future__ import annotations

import pytest
from rlm_core.cost import library
from rlm_core.cost.analysis import work_facts
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import WaitKind, WorkFacts


def _facts(text: str) -> WorkFacts:
    facts = work_facts(text)
    assert facts is not None
    return facts


def _waits(text: str) -> list[WaitKind]:
    return [wait.kind for wait in _facts(text).waits]


@pytest.mark.parametrize(
    "call", ["session.commit()", "self.db.flush()", "cursor.execute(query)", "conn.commit()", "redis.hgetall(key)"]
)
def test_an_object_and_its_method_show_a_wait_for_a_database_by_their_names(call: str) -> None:
    assert _waits(f"def f(self, session, cursor, conn, redis, query, key):\n    {call}\n") == [WaitKind.DATABASE]


@pytest.mark.parametrize("call", ["session.get(key)", "session.update(values)", "db.append(key)", "run.commit_all()"])
def test_other_methods_of_these_names_do_not_wait(call: str) -> None:
    assert _waits(f"def f(session, db, run, key, values):\n    return {call}\n") == []


def test_a_method_of_the_program_counts_before_what_a_name_usually_means() -> None:
    text = "class Session:\n    def commit(self):\n        return 1\n\n"
    text += "def f():\n    session = Session()\n    session.commit()\n"
    assert _waits(text) == []


def test_queries_of_a_model_wait_with_their_last_call() -> None:
    assert _waits("def f(name):\n    return User.objects.filter(name=name).order_by('id')\n") == []
    assert _waits("def f(name):\n    return User.objects.filter(name=name).first()\n") == [WaitKind.DATABASE]
    imported = "def f(name):\n    from shop.models import User\n    return User.objects.get(name=name)\n"
    assert _waits(imported) == [WaitKind.DATABASE]
    assert _waits("def f(scene):\n    return scene.objects.get('a')\n") == []


def test_a_logger_of_another_file_is_a_logger() -> None:
    facts = _facts("def f(x):\n    logger.info('text %s', x)\n    self.log.debug('text')\n")
    assert not any("info" in name or "debug" in name for name, _ in facts.unknown)


def test_an_alias_of_a_type_in_a_hint_is_that_type() -> None:
    text = (
        "from typing import Annotated\nfrom sqlalchemy.orm import Session\nfrom fastapi import Depends\n"
        "SessionDep = Annotated[Session, Depends(len)]\n\n"
        "def f(database: SessionDep, user):\n    database.refresh(user)\n"
    )
    (unit,) = Analyser().analyse(ParsedSource(text.encode(), "python"))
    assert unit.code.work is not None
    assert [wait.kind for wait in unit.code.work.waits] == [WaitKind.DATABASE]


def test_names_of_errors_in_packages_make_exceptions() -> None:
    for name in ("shop.errors.PriceError", "requests.exceptions.Timeout", "a.b.SomeException"):
        assert library.rule_for(name) is library.rule_for("builtins.Exception")
    assert library.rule_for("shop.errors.find_error") is None
