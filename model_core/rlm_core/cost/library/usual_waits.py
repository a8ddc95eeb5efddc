"""Says which calls usually wait although nothing shows the type of their object: by their name and what they are on.

Input: a call as the names that it is written with, such as ``User.objects.filter().first``. Output: what it waits for.
Only waits in loops are found this way. What the facts of a unit otherwise say of its waits needs types.
"""

from __future__ import annotations

import ast
import re

from rlm_core.types import WaitKind

Chain = tuple[str, ...]
"""The names of an expression from the left: ``("self", "users()", "[]", "save")``; a called one ends in ``()``."""

_DATABASE, _NETWORK, _PROCESS = WaitKind.DATABASE, WaitKind.NETWORK, WaitKind.PROCESS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(text: str, kind: WaitKind) -> dict[str, WaitKind]:
    return dict.fromkeys(text.split(), kind)


# Names that mean one thing on any object, or on none.
_ANYWHERE: dict[str, WaitKind] = {
    **_names(
        "bulk_create bulk_update get_or_create update_or_create refresh_from_db get_object_or_404 get_list_or_404"
        " fetchrow fetchval executemany find_one insert_one insert_many update_one update_many delete_one delete_many"
        " replace_one count_documents find_one_and_update bulk_save_objects first_or_404 get_or_404",
        _DATABASE,
    ),
    **_names(
        "delay apply_async send_task urlopen urlretrieve send_mail send_email reply_text send_message send_photo"
        " download_file upload_file upload_fileobj download_fileobj put_object head_object list_objects_v2",
        _NETWORK,
    ),
    **_names("check_output check_call getoutput getstatusoutput", _PROCESS),
}
_POOLS = re.compile(r"pool|executor", re.IGNORECASE)
# Queries are built lazily, and sent by their last call.
_MANAGERS = frozenset({"objects", "_default_manager", "_base_manager", "all_objects"})
_SENDING = _words(
    "get create first last count exists update delete aggregate in_bulk latest earliest aget acreate"
    " afirst acount aexists aupdate adelete all_or_404 one one_or_none scalar paginate"
)
_SENDING_SQL = _SENDING - {"aggregate"} | {"all", "scalars", "fetchall"}
# The last name of an object, and its methods that wait.
_OBJECTS: tuple[tuple[re.Pattern[str], frozenset[str], WaitKind], ...] = tuple(
    (re.compile(name), _words(methods), kind)
    for name, methods, kind in (
        (
            r"(^|_)session$|^(dbsession|db|database|Session|DBSession|session_factory\(\))$",
            "commit flush refresh execute scalar scalars rollback merge",
            _DATABASE,
        ),
        (r"(^|_)(cursor|cur|curs)$", "execute executemany callproc", _DATABASE),
        (
            r"(^|_)(conn|connection|engine|con|db|database|pool|tx|transaction)$",
            "execute executemany scalar scalars fetch fetch_all fetch_one",
            _DATABASE,
        ),
        (
            r"(^|_)redis(_client|_conn|_connection)?$",
            "get set hget hset hgetall mget delete expire incr lpush rpush lpop rpop exists keys sadd srem smembers"
            " zadd zrange publish setex ttl llen",
            _DATABASE,
        ),
        (
            r"(^|_)(http|https|requests|http_client|httpx_client|http_session|requests_session)$",
            "get post put patch delete head options request",
            _NETWORK,
        ),
        (r"(^|_)(session|client|api)$", "post put patch request head", _NETWORK),
    )
)
_FETCHING = re.compile(r"url|http|/", re.IGNORECASE)
# Methods of chats: they are awaited.
_CHATS = re.compile(
    r"^(ctx|context|channel|author|user|member|message|msg|guild|interaction|followup|response|bot|role|webhook|chat)$"
)
_CHAT_METHODS = _words(
    "send reply edit delete add_reaction remove_reaction ban unban kick add_roles remove_roles respond"
    " send_message answer fetch_message fetch_user fetch_member fetch_channel create_role"
    " create_text_channel purge"
)
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
    """``session.query()``, ``User.query`` of a class, or ``books.filter()``."""
    return any(
        part in _QUERIES or (part == "query" and place and objects[place - 1][:1].isupper())
        for place, part in enumerate(objects)
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
