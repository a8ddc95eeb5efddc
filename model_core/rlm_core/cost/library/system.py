"""Rules for files and paths, clocks and dates, logging, and what a program needs of ``sys`` and ``typing``.

The size of a file is not in the text: reading it costs a system call plus its bytes, whose number is a named size.
"""

from __future__ import annotations

from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value, number_of
from .rules import (
    INT,
    Rule,
    argument,
    container,
    lazy,
    receiver,
    text,
)
from .unit_costs import each, primitive, seconds

_LINE = 40.0  # characters of a line
_PATH = text(constant(1.0, 200.0, 40.0))
_FILE = Value("object", name="io.TextIOWrapper", bytes=constant(9000.0))
_BINARY = Value("object", name="io.BufferedReader", bytes=constant(9000.0))


def open_file(position: int) -> Rule:
    """A function or method that opens a file, with the mode at a position."""

    def rule(call: Call) -> Value:
        call.spend(primitive("builtins.open"))
        mode = argument(call, position, "mode").constant
        return _BINARY if isinstance(mode, str) and "b" in mode else _FILE

    return rule


def printed(call: Call) -> Value:
    characters = ZERO
    for value in call.args:
        characters = characters + (value.size if value.kind == "str" and value.size is not None else constant(4.0))
    call.spend(constant(primitive("builtins.print")) + characters.times(each("file.write")))
    for value in call.args:
        if value.kind in ("list", "tuple", "dict", "set") and value.size is not None:
            call.spend(seconds("builtins.repr", value.size))
    return NONE


def _size_of_file(call: Call) -> Quantity:
    """A named size: of the file that is read."""
    value = receiver(call)
    return call.length(value if value.kind == "unknown" else UNKNOWN)


def read(kind: str, *, opens: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        wanted = argument(call, 0, "size") if not opens else UNKNOWN
        number = number_of(wanted) if wanted is not UNKNOWN and wanted.kind == "int" else None
        exact = number.exact if number is not None else None
        size = number if number is not None and (exact is None or exact >= 0) else _size_of_file(call)
        if opens:
            call.spend(primitive("builtins.open"))
        made = kind or _kind_of_file(call)
        call.spend(seconds("file.read.bytes" if made == "bytes" else "file.read", size))
        if made == "str" and receiver(call).name != "io.StringIO":
            call.allocate(size)  # the bytes that are decoded
        return text(size, made)

    return rule


def load_json(call: Call) -> Value:
    """``json.load``: a file is read as a whole. Its size is that of no input: the call stays unknown."""
    file = argument(call, 0, "fp")
    size = file.size if file.kind == "object" and file.size is not None else call.length(UNKNOWN)
    call.spend(seconds("file.read", size) + seconds("json.loads", size))
    call.allocate(size)
    call.unknown(ONE)
    return Value("unknown", size=size.times(1 / 9), bytes=size.times(60 / 9))


def _kind_of_file(call: Call) -> str:
    """Return the kind of what is read from a file."""
    return "bytes" if receiver(call).name in ("io.BufferedReader", "io.BytesIO") else "str"


def read_line(call: Call) -> Value:
    call.spend(primitive("file.readline"))
    return text(constant(_LINE), _kind_of_file(call))


def read_lines(call: Call) -> Value:
    lines = _size_of_file(call)
    call.spend(seconds("file.readline", lines))
    return container("list", lines, text(constant(_LINE), _kind_of_file(call)), grown=True, fresh=True)


def write(*, opens: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value = argument(call, 0)
        size = value.size if value.size is not None else call.length(value)
        if opens:
            call.spend(primitive("builtins.open"))
        call.spend(seconds("file.write", size))
        return INT

    return rule


def write_lines(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    width = value.item.size if value.item is not None and value.item.size is not None else constant(_LINE)
    call.spend(count * (constant(primitive("file.write")) + width.times(each("file.write"))))
    return NONE


def memory_file(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        value = argument(call, 0)
        size = call.length(value) if call.args else ZERO
        call.spend(seconds("io.StringIO", size))
        # An empty file joins what is written; one with a text has four bytes for each character.
        width = 4.0 if kind == "str" else 1.0
        name = "io.StringIO" if kind == "str" else "io.BytesIO"
        return Value("object", name=name, size=size, bytes=size.times(width) + constant(200.0))

    return rule


# Folders and paths.


def listing(kind: str, held: float = 0.0, *, is_lazy: bool = False) -> Rule:
    """Entries of a folder: names, or objects of a type that hold so many bytes."""
    item = _PATH if kind == "str" else Value("object", name=kind, bytes=constant(held))

    def rule(call: Call) -> Value:
        value = receiver(call)
        count = call.length(value if value.kind == "unknown" else UNKNOWN)
        call.spend(seconds("os.listdir", count))
        return lazy(count, item, each("os.scandir")) if is_lazy else container("list", count, item, fresh=True)

    return rule


def walk(call: Call) -> Value:
    count = call.length(argument(call, 0) if argument(call, 0).kind == "unknown" else UNKNOWN)
    call.spend(primitive("os.listdir"))
    parts = (_PATH, Value("list", item=_PATH), Value("list", item=_PATH))
    return lazy(count, Value("tuple", size=constant(3.0), payload=parts), primitive("os.walk"))


def joined_path(call: Call) -> Value:
    call.spend(constant(len(call.args)).times(primitive("os.path.join") / 2))
    return _PATH


def logging_call(share: float) -> Rule:
    """A record that is dropped costs little; one that is written, as a share of them is, about a hundred times that."""

    def rule(call: Call) -> Value:
        dropped, written = primitive("logging.debug"), primitive("logging.info")
        call.spend(constant(dropped, written, dropped + share * (written - dropped)))
        return NONE

    return rule
