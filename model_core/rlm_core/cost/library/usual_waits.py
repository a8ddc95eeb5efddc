"""Says which calls usually wait although nothing shows the type of their object: by their name and what they are on.

Input: a call as the names that it is written with, such as ``User.objects.filter().first``. Output: what it waits for.
The names are in ``usual_waits.toml``. Only waits in loops are found this way: the other waits of a unit need types.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from rlm_core.types import WaitKind

Chain = tuple[str, ...]
"""The names of an expression from the left: ``("self", "users()", "[]", "save")``; a called one ends in ``()``."""

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_DATABASE, _NETWORK = WaitKind.DATABASE, WaitKind.NETWORK


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ANYWHERE = {name: WaitKind(kind) for kind, names in _TABLE["anywhere"].items() for name in names.split()}
_POOLS = re.compile(r"pool|executor", re.IGNORECASE)
_MANAGERS = frozenset({"objects", "_default_manager", "_base_manager", "all_objects"})
_SENDING, _SENDING_SQL = (_words(f"{_TABLE['sending']['both']} {_TABLE['sending'][of]}") for of in ("django", "sql"))
_OBJECTS = tuple(
    (re.compile(entry["name"]), _words(entry["methods"]), WaitKind(entry["waits"])) for entry in _TABLE["objects"]
)
_FETCHING = re.compile(r"url|http|/", re.IGNORECASE)
_CHATS, _CHAT_METHODS = re.compile(_TABLE["chats"]["name"]), _words(_TABLE["chats"]["methods"])
_CLIENTS = frozenset({"client()", "resource()"})
_LOCAL = frozenset({"get_paginator", "can_paginate", "get_waiter", "generate_presigned_url", "close", "meta"})
_SERVICE_CALL = re.compile(
    r"^(describe|list|get|put|delete|create|update|modify|tag|untag|start|stop|terminate|detach|attach|associate|send"
    r"|disassociate|enable|disable|register|deregister|invoke|publish|copy|reboot|run|batch|head|restore|cancel|revoke"
    r"|authorize|add|remove|set)_\w+$"
)
# Objects with a method ``save`` that write a file or nothing.
_FILES = re.compile(
    r"config|setting|cfg|fig|ima?ge?$|wb$|book|cache|state|plot|model$|doc$|pdf|file|path", re.IGNORECASE
)
_SAVED = frozenset({"save", "delete"})
DATABASES = (
    "django sqlalchemy sqlmodel peewee mongoengine tortoise pony sqlobject pymongo motor beanie odmantic psycopg"
    " psycopg2 models model orm db database databases"
)
"""Words in the imports of a file that works with a database: other objects have a ``save`` and a ``delete`` as well."""
_QUERIES = frozenset({"query()", "filter()", "filter_by()", "exclude()", "select_related()", "prefetch_related()"})
_SESSIONS = re.compile(r"^(db_session|session|db|conn|connection|cursor|cur)$")
_ACCESS = re.compile(r"^(get|create|delete|update|find|fetch|load|save|insert|upsert|query|count|exists)(_|$)")


def chain_of(node: ast.expr) -> Chain:
    """The names that an expression is written with; empty where it is something else."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value, attr=name):
            return (*chain_of(value), name)
        case ast.Call(func=function):
            chain = chain_of(function)
            return (*chain[:-1], f"{chain[-1]}()") if chain else ()
        case ast.Subscript(value=value):
            return (*chain_of(value), "[]")
        case ast.Await(value=value):
            return chain_of(value)
        case _:
            return ()


READING = _words("list tuple set dict len sorted bool max min sum")
"""Functions that read a query that they are given."""
_METHODS = frozenset(_ANYWHERE).union(
    _SENDING, _SENDING_SQL, _CHAT_METHODS, READING, *(methods for _, methods, _ in _OBJECTS), _words("save execute")
)


def may_wait(call: ast.Call) -> bool:
    """Return whether the name of a call is one that waits on some objects: most names are not."""
    function = call.func
    if isinstance(function, ast.Attribute):
        name = function.attr
    elif isinstance(function, ast.Name):
        name = function.id
    else:
        return False
    return name in _METHODS or _ACCESS.match(name) is not None or _SERVICE_CALL.match(name) is not None


def usual_wait(call: ast.Call, chain: Chain, *, is_awaited: bool = False) -> WaitKind | None:
    """What a call usually waits for; None if it does not, or nothing is known. ``chain`` has the called name last."""
    if not chain:
        return None
    *objects, method = chain
    last = objects[-1] if objects else ""
    if method in _ANYWHERE:
        return None if _POOLS.search(last) else _ANYWHERE[method]
    if _MANAGERS & set(objects) and not _is_sent(objects, _SENDING):
        return _DATABASE if method in _SENDING else None
    if _is_sql(objects) and not _is_sent(objects, _SENDING_SQL):
        return _DATABASE if method in _SENDING_SQL else None
    if _is_service_call(call, objects, method):
        return _NETWORK
    if method == "execute" and not call.args and not call.keywords and last.endswith("()"):
        return _NETWORK  # of a request that was built before
    if len(objects) > 1 and objects[-2] == "request" and last == "session":
        return None  # the session of a visitor, not of a database
    if (last.endswith("session") and method == "get") or (last in ("db", "client") and method == "get"):
        return _fetched(call)
    for pattern, methods, kind in _OBJECTS:
        if method in methods and pattern.search(last):
            return kind
    if is_awaited and method in _CHAT_METHODS and _CHATS.match(last.removesuffix("()")):
        return _NETWORK
    has_no_values = all(isinstance(argument, ast.Starred) for argument in call.args)
    if method == "save" and objects and has_no_values and not _FILES.search(last):
        return _DATABASE
    if method == "delete" and objects and not call.args and not call.keywords:
        return _NETWORK if is_awaited else _DATABASE
    return _given_session(call, method, is_awaited=is_awaited)


def is_by_method(chain: Chain) -> bool:
    """Return whether only the name of a method says that a call waits: ``user.save()``."""
    return chain[-1] in _SAVED and not _MANAGERS & set(chain) and not _is_sql(chain)


def is_query(chain: Chain) -> bool:
    """Return whether an expression is a query that its reader sends: ``User.objects.filter()``."""
    if not chain or not chain[-1].endswith("()"):
        return False
    if _MANAGERS & set(chain[:-1]):
        return not _is_sent(chain, _SENDING)
    return _is_sql(chain) and not _is_sent(chain, _SENDING_SQL)


def _is_sent(objects: list[str] | Chain, sending: frozenset[str]) -> bool:
    """Return whether an expression goes on behind the call that sends its query: what follows is of its result."""
    return any(part.endswith("()") and part.removesuffix("()") in sending for part in objects)


def _is_sql(objects: list[str] | Chain) -> bool:
    """``session.query()``, ``User.query`` of a class, or ``books.filter()``; not the function ``filter()``."""
    return any(
        part in _QUERIES or (part == "query" and objects[place - 1][:1].isupper())
        for place, part in enumerate(objects)
        if place
    )


def _is_service_call(call: ast.Call, objects: list[str], method: str) -> bool:
    """Requests to cloud services have arguments by name only, in another spelling than Python's."""
    if method in _LOCAL or not objects:
        return False
    if objects[-1] in _CLIENTS:
        return True
    return _SERVICE_CALL.match(method) is not None and _has_service_arguments(call)


def _has_service_arguments(call: ast.Call) -> bool:
    named = [word.arg for word in call.keywords if word.arg is not None]
    return bool(named) and any(any(letter.isupper() for letter in name) and "_" not in name for name in named)


def _fetched(call: ast.Call) -> WaitKind | None:
    """``session.get(User, 1)`` reads a row, ``session.get(url)`` sends a request, ``session.get("name")`` neither."""
    if not call.args:
        return None
    first = call.args[0]
    if len(call.args) > 1 and (chain := chain_of(first)) and chain[-1][:1].isupper():
        return _DATABASE
    return _NETWORK if isinstance(first, ast.JoinedStr) or _FETCHING.search(ast.unparse(first)) else None


def _given_session(call: ast.Call, method: str, *, is_awaited: bool) -> WaitKind | None:
    """``users.get_by_name(session, name)``: a function that reads or writes something through what it is given."""
    if not _ACCESS.match(method):
        return None
    names = [value.id for value in (*call.args, *(word.value for word in call.keywords)) if isinstance(value, ast.Name)]
    if not any(_SESSIONS.match(name) for name in names):
        return None
    return _NETWORK if is_awaited and "session" in names else _DATABASE
