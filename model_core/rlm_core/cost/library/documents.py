"""Rules for what reads and writes documents: XML, configuration files, SQLite, and comparisons of texts."""

from __future__ import annotations

from ..domain.quantities import constant
from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Rule, argument, fixed, lazy, scanning, text
from .unit_costs import primitive, seconds

_ELEMENT = Value("object", name="xml.etree.ElementTree.Element", bytes=constant(100.0, 600.0, 300.0))
_PARSER = "configparser.ConfigParser"
_DATABASE, _CURSOR = "sqlite3.Connection", "sqlite3.Cursor"
_CURSORS = Value("object", name=_CURSOR, bytes=constant(200.0))
_OPTION_BYTES = 60.0  # of a parsed configuration, for each character
_CHANGED = constant(0.0, 2.0, 0.3)  # lines of a comparison for each line that is compared


def _insert_many(call: Call) -> Value:
    rows = call.consume(argument(call, 1))
    call.spend(seconds("sqlite3.executemany", rows))
    return _CURSORS


def _compared(call: Call) -> Value:
    """The lines of a comparison, which is made as they are read."""
    lines = call.consume(argument(call, 0, "a")) + call.consume(argument(call, 1, "b"))
    call.spend(seconds("difflib.unified_diff", lines.times(0.5)))
    return lazy(lines.times(0.5) * _CHANGED, text(constant(5.0, 200.0, 40.0)))


def _read_configuration(call: Call) -> Value:
    size = call.length(argument(call, 0, "string"))
    call.spend(seconds("configparser.read_string", size))
    call.allocate(size.times(_OPTION_BYTES))
    return NONE


def _rows(call: Call) -> Value:
    call.spend(primitive("sqlite3.execute"))
    return Value("list", item=Value("tuple"))


FUNCTIONS: dict[str, Rule] = {
    "xml.etree.ElementTree.Element": fixed("xml.Element", _ELEMENT),
    "xml.etree.ElementTree.SubElement": fixed("xml.Element", _ELEMENT),
    "xml.etree.ElementTree.fromstring": scanning("xml.fromstring", _ELEMENT),
    "xml.etree.ElementTree.XML": scanning("xml.fromstring", _ELEMENT),
    "configparser.ConfigParser": fixed("configparser.ConfigParser", Value("object", name=_PARSER)),
    "sqlite3.connect": fixed("sqlite3.connect", Value("object", name=_DATABASE)),
    **{f"difflib.{name}": _compared for name in ("unified_diff", "context_diff", "ndiff")},
}
METHODS: dict[tuple[str, str], Rule] = {
    (_PARSER, "read_string"): _read_configuration,
    (_DATABASE, "cursor"): fixed("call.builtin", _CURSORS),
    **{
        (kind, method): rule
        for kind in (_DATABASE, _CURSOR)
        for method, rule in {
            "execute": fixed("sqlite3.execute", _CURSORS),
            "executemany": _insert_many,
            "commit": fixed("sqlite3.execute", NONE),
            "close": fixed("sqlite3.execute", NONE),
        }.items()
    },
    (_CURSOR, "fetchone"): fixed("call.method", UNKNOWN),
    (_CURSOR, "fetchall"): _rows,
}
