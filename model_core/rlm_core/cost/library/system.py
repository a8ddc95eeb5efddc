"""Rules for files and paths, clocks and dates, logging, and what a program needs of ``sys`` and ``typing``.

The size of a file is not in the text: reading it costs a system call plus its bytes, whose number is a named size.
"""

from __future__ import annotations

from collections.abc import Callable

from ..domain.quantities import ZERO, Quantity, constant
from ..domain.values import NONE, UNKNOWN, Call, Value, number_of
from .rules import (
    BOOL,
    FLOAT,
    INT,
    SHORT,
    Attribute,
    Rule,
    argument,
    bare,
    container,
    fixed,
    lazy,
    literal,
    receiver,
    text,
)
from .unit_costs import each, primitive, seconds

_LINE = 40.0  # characters of a line
_PATH = text(constant(1.0, 200.0, 40.0))
_FILE = Value("object", name="io.TextIOWrapper", bytes=constant(9000.0))
_BINARY = Value("object", name="io.BufferedReader", bytes=constant(9000.0))


def _open(call: Call) -> Value:
    call.spend(primitive("builtins.open"))
    mode = argument(call, 1, "mode").constant
    return _BINARY if isinstance(mode, str) and "b" in mode else _FILE


def _path_open(call: Call) -> Value:
    call.spend(primitive("builtins.open"))
    mode = argument(call, 0, "mode").constant
    return _BINARY if isinstance(mode, str) and "b" in mode else _FILE


def _print(call: Call) -> Value:
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


def _read(kind: str, *, opens: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        wanted = argument(call, 0, "size") if not opens else UNKNOWN
        number = number_of(wanted) if wanted is not UNKNOWN and wanted.kind == "int" else None
        exact = number.exact if number is not None else None
        size = number if number is not None and (exact is None or exact >= 0) else _size_of_file(call)
        if opens:
            call.spend(primitive("builtins.open"))
        if kind == "" and receiver(call).name == "io.BufferedReader":
            call.spend(seconds("file.read.bytes", size))
            return text(size, "bytes")
        call.spend(seconds("file.read.bytes" if kind == "bytes" else "file.read", size))
        return text(size, kind or "str")

    return rule


def _read_lines(call: Call) -> Value:
    lines = _size_of_file(call)
    call.spend(seconds("file.readline", lines))
    return container("list", lines, text(constant(_LINE)), grown=True, fresh=True)


def _write(*, opens: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value = argument(call, 0)
        size = value.size if value.size is not None else call.length(value)
        if opens:
            call.spend(primitive("builtins.open"))
        call.spend(seconds("file.write", size))
        return INT

    return rule


def _write_lines(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    width = value.item.size if value.item is not None and value.item.size is not None else constant(_LINE)
    call.spend(count * (constant(primitive("file.write")) + width.times(each("file.write"))))
    return NONE


def _memory_file(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        value = argument(call, 0)
        size = call.length(value) if call.args else ZERO
        call.spend(seconds("io.StringIO", size))
        width = 4.0 if kind == "str" else 1.0
        name = "io.StringIO" if kind == "str" else "io.BytesIO"
        return Value("object", name=name, size=size, bytes=size.times(width) + constant(200.0))

    return rule


def _contents(kind: str) -> Rule:
    def rule(call: Call) -> Value:
        size = call.length(receiver(call))
        call.spend(seconds("io.StringIO", size))
        return text(size, kind)

    return rule


# Folders and paths.


def _listing(item: Value, *, is_lazy: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value = receiver(call)
        count = call.length(value if value.kind == "unknown" else UNKNOWN)
        call.spend(seconds("os.listdir", count))
        return lazy(count, item, each("os.scandir")) if is_lazy else container("list", count, item, fresh=True)

    return rule


def _walk(call: Call) -> Value:
    count = call.length(argument(call, 0) if argument(call, 0).kind == "unknown" else UNKNOWN)
    call.spend(primitive("os.listdir"))
    parts = (_PATH, Value("list", item=_PATH), Value("list", item=_PATH))
    return lazy(count, Value("tuple", size=constant(3.0), payload=parts), primitive("os.walk"))


def _joined_path(call: Call) -> Value:
    call.spend(constant(len(call.args)).times(primitive("os.path.join") / 2))
    return _PATH


def _path(cost: str) -> Rule:
    return fixed(cost, Value("object", name="pathlib.Path", bytes=constant(120.0)))


_PATH_TESTS = ("exists", "isfile", "isdir", "islink", "getsize", "getmtime")
_PATH_TEXTS = {"basename": "os.path.basename", "dirname": "os.path.basename", "splitext": "os.path.basename",
               "split": "os.path.basename", "abspath": "os.path.abspath", "normpath": "os.path.abspath",
               "realpath": "os.path.realpath", "relpath": "os.path.realpath", "expanduser": "os.path.basename",
               "expandvars": "os.path.basename", "isabs": "os.path.basename"}  # fmt: skip
_SYSTEM_CALLS = (
    "stat",
    "lstat",
    "mkdir",
    "remove",
    "unlink",
    "rename",
    "replace",
    "rmdir",
    "chmod",
    "access",
    "readlink",
)
_DATES = ("datetime", "date", "time", "timedelta", "timezone")


def _date(name: str) -> Value:
    return Value("object", name=f"datetime.{name}", bytes=constant(48.0))


_NOW = _date("datetime")
_FREE: dict[str, Value] = {
    "sys.getsizeof": INT, "sys.exit": NONE, "sys.getrecursionlimit": INT, "sys.setrecursionlimit": NONE,
    "sys.intern": UNKNOWN, "sys.exc_info": UNKNOWN, "sys._getframe": UNKNOWN, "gc.disable": NONE, "gc.enable": NONE,
    "gc.isenabled": BOOL, "warnings.simplefilter": NONE, "warnings.filterwarnings": NONE, "typing.cast": UNKNOWN,
    "typing.TypeVar": UNKNOWN, "typing.get_type_hints": Value("dict"), "weakref.ref": UNKNOWN, "os.getpid": INT,
    "os.cpu_count": INT, "os.getenv": Value("str"), "os.environ.get": Value("str"), "os.getcwd": _PATH,
    "contextvars.ContextVar": Value("object", name="contextvars.ContextVar"), "inspect.currentframe": UNKNOWN,
    "threading.current_thread": UNKNOWN, "threading.get_ident": INT, "os.fspath": _PATH, "time.time_ns": INT,
    "time.perf_counter_ns": INT, "time.monotonic_ns": INT, "platform.system": Value("str"), "sys.getrefcount": INT,
    "dataclasses.field": UNKNOWN, "enum.auto": UNKNOWN, "abc.abstractmethod": UNKNOWN, "atexit.register": UNKNOWN,
    "locale.setlocale": UNKNOWN,
}  # fmt: skip


def _asdict(call: Call) -> Value:
    call.spend(primitive("dataclasses.asdict"))
    return Value("dict", bytes=constant(300.0))


def _identity(call: Call) -> Value:
    call.spend(primitive("call.builtin"))
    return bare(argument(call, 0))


def _logging(share: float) -> Rule:
    """A record that is dropped costs little; one that is written, as a share of them is, about a hundred times that."""

    def rule(call: Call) -> Value:
        dropped, written = primitive("logging.debug"), primitive("logging.info")
        call.spend(constant(dropped, written, dropped + share * (written - dropped)))
        return NONE

    return rule


# By default warnings are written and nothing below them.
_LEVELS = {
    **dict.fromkeys(("debug", "info", "log"), _logging(0.3)),
    **dict.fromkeys(("warning", "warn", "error", "exception", "critical"), _logging(0.9)),
}
_LOGGER = Value("object", name="logging.Logger")


def _formatted(call: Call) -> Value:
    call.spend(primitive("datetime.strftime"))
    return text(SHORT)


FUNCTIONS: dict[str, Rule] = {
    "builtins.open": _open,
    "io.open": _open,
    "gzip.open": _open,
    "builtins.print": _print,
    "pprint.pprint": _print,
    "io.StringIO": _memory_file("str"),
    "io.BytesIO": _memory_file("bytes"),
    "os.listdir": _listing(_PATH),
    "os.scandir": _listing(Value("object", name="os.DirEntry"), is_lazy=True),
    "os.walk": _walk,
    "glob.glob": _listing(_PATH),
    "glob.iglob": _listing(_PATH, is_lazy=True),
    "os.path.join": _joined_path,
    **{f"os.path.{name}": fixed("os.stat", BOOL if name[0] in "ei" else INT) for name in _PATH_TESTS},
    **{f"os.path.{name}": fixed(cost, _PATH) for name, cost in _PATH_TEXTS.items()},
    **{f"os.{name}": fixed("os.stat", UNKNOWN) for name in _SYSTEM_CALLS},
    "os.makedirs": fixed("os.stat", NONE),
    "shutil.copy": fixed("shutil.copy", _PATH),
    "shutil.copyfile": fixed("shutil.copy", _PATH),
    "shutil.copy2": fixed("shutil.copy", _PATH),
    "shutil.move": fixed("shutil.copy", _PATH),
    "shutil.which": fixed("os.path.realpath", _PATH),
    "tempfile.mkdtemp": fixed("shutil.copy", _PATH),
    "tempfile.NamedTemporaryFile": fixed("shutil.copy", _FILE),
    "tempfile.TemporaryDirectory": fixed("shutil.copy", UNKNOWN),
    "pathlib.Path": _path("pathlib.Path"),
    "pathlib.PurePath": _path("pathlib.Path"),
    "pathlib.Path.cwd": _path("pathlib.Path"),
    "pathlib.Path.home": _path("pathlib.Path"),
    "time.time": fixed("time.time", FLOAT),
    "time.perf_counter": fixed("time.time", FLOAT),
    "time.monotonic": fixed("time.time", FLOAT),
    "time.process_time": fixed("time.process_time", FLOAT),
    "time.thread_time": fixed("time.process_time", FLOAT),
    "time.localtime": fixed("time.localtime", UNKNOWN),
    "time.gmtime": fixed("time.localtime", UNKNOWN),
    "time.strftime": _formatted,
    "time.ctime": _formatted,
    **{f"datetime.{name}": fixed("datetime.datetime", _date(name)) for name in _DATES},
    "datetime.datetime.now": fixed("datetime.now", _NOW),
    "datetime.datetime.utcnow": fixed("datetime.now", _NOW),
    "datetime.datetime.today": fixed("datetime.now", _NOW),
    "datetime.datetime.fromtimestamp": fixed("datetime.now", _NOW),
    "datetime.datetime.fromisoformat": fixed("datetime.datetime", _NOW),
    "datetime.datetime.strptime": fixed("datetime.strptime", _NOW),
    "datetime.datetime.combine": fixed("datetime.datetime", _NOW),
    "datetime.date.today": fixed("datetime.now", _date("date")),
    "datetime.date.fromisoformat": fixed("datetime.datetime", _date("date")),
    "calendar.monthrange": fixed("calendar.monthrange", UNKNOWN),
    "uuid.uuid4": fixed("uuid.uuid4", Value("object", name="uuid.UUID", bytes=constant(100.0))),
    "uuid.uuid1": fixed("uuid.uuid4", Value("object", name="uuid.UUID", bytes=constant(100.0))),
    "uuid.uuid5": fixed("uuid.uuid4", Value("object", name="uuid.UUID", bytes=constant(100.0))),
    "uuid.UUID": fixed("uuid.UUID", Value("object", name="uuid.UUID", bytes=constant(100.0))),
    "logging.getLogger": fixed("logging.getLogger", _LOGGER),
    "logging.basicConfig": fixed("logging.getLogger", NONE),
    **{f"logging.{name}": rule for name, rule in _LEVELS.items()},
    "warnings.warn": fixed("warnings.warn", NONE),
    "traceback.format_exc": fixed("warnings.warn", text(SHORT)),
    "dataclasses.asdict": _asdict,
    "dataclasses.astuple": _asdict,
    "dataclasses.replace": fixed("dataclasses.replace", UNKNOWN),
    "dataclasses.dataclass": _identity,
    "dataclasses.fields": fixed("dataclasses.replace", Value("tuple")),
    "gc.collect": fixed("gc.collect", INT),
    "inspect.signature": fixed("inspect.signature", UNKNOWN),
    "argparse.ArgumentParser": fixed("argparse.ArgumentParser", Value("object", name="argparse.ArgumentParser")),
    **{name: fixed("call.builtin", result) for name, result in _FREE.items()},
}
_FILES = ("io.TextIOWrapper", "io.BufferedReader", "io.StringIO", "io.BytesIO")
_FILE_METHODS: dict[str, Rule] = {
    "read": _read(""),
    "readline": fixed("file.readline", text(constant(_LINE))),
    "readlines": _read_lines,
    "write": _write(),
    "writelines": _write_lines,
    "close": fixed("call.builtin", NONE),
    "flush": fixed("file.flush", NONE),
    "seek": fixed("file.flush", INT),
    "tell": fixed("file.flush", INT),
    "truncate": fixed("file.flush", INT),
    "fileno": fixed("call.builtin", INT),
    "isatty": fixed("file.flush", BOOL),
}
_PATHS = ("exists", "is_file", "is_dir", "stat", "mkdir", "unlink", "rename", "touch", "rmdir", "is_symlink", "replace")
METHODS: dict[tuple[str, str], Rule] = {
    **{(name, method): rule for name in _FILES for method, rule in _FILE_METHODS.items()},
    ("io.StringIO", "getvalue"): _contents("str"),
    ("io.BytesIO", "getvalue"): _contents("bytes"),
    ("io.BytesIO", "getbuffer"): fixed("call.builtin", Value("memoryview")),
    ("pathlib.Path", "read_text"): _read("str", opens=True),
    ("pathlib.Path", "read_bytes"): _read("bytes", opens=True),
    ("pathlib.Path", "write_text"): _write(opens=True),
    ("pathlib.Path", "write_bytes"): _write(opens=True),
    ("pathlib.Path", "open"): _path_open,
    ("pathlib.Path", "iterdir"): _listing(Value("object", name="pathlib.Path", bytes=constant(120.0)), is_lazy=True),
    ("pathlib.Path", "glob"): _listing(Value("object", name="pathlib.Path", bytes=constant(120.0)), is_lazy=True),
    ("pathlib.Path", "rglob"): _listing(Value("object", name="pathlib.Path", bytes=constant(120.0)), is_lazy=True),
    **{("pathlib.Path", name): fixed("os.stat", BOOL) for name in _PATHS},
    **{("pathlib.Path", name): _path("pathlib.Path")
       for name in ("joinpath", "with_suffix", "with_name", "relative_to")},
    **{("pathlib.Path", name): _path("os.path.realpath") for name in ("resolve", "absolute", "expanduser")},
    ("pathlib.Path", "as_posix"): fixed("os.path.basename", _PATH),
    **{("logging.Logger", name): rule for name, rule in _LEVELS.items()},
    **{("logging.Logger", name): fixed("call.builtin", UNKNOWN)
       for name in ("setLevel", "addHandler", "isEnabledFor", "removeHandler", "getChild")},
    **{(f"datetime.{kind}", name): _formatted for kind in _DATES for name in ("strftime", "isoformat", "ctime")},
    **{(f"datetime.{kind}", name): fixed("datetime.datetime", _date(kind))
       for kind in _DATES for name in ("replace", "astimezone", "date", "time", "total_seconds", "timestamp", "weekday",
                                       "isoweekday", "toordinal", "timetuple", "utcoffset")},
    ("argparse.ArgumentParser", "add_argument"): fixed("argparse.add_argument", UNKNOWN),
    ("argparse.ArgumentParser", "parse_args"): fixed("argparse.ArgumentParser", UNKNOWN),
    ("contextvars.ContextVar", "get"): fixed("call.builtin"),
    ("contextvars.ContextVar", "set"): fixed("call.builtin"),
}  # fmt: skip
_PARTS: dict[str, Callable[[Value], Value]] = {
    "name": lambda value: _PATH, "stem": lambda value: _PATH, "suffix": lambda value: text(constant(4.0)),
    "parent": lambda value: value, "parts": lambda value: Value("tuple", size=constant(1.0, 10.0, 4.0), item=_PATH),
}  # fmt: skip
ATTRIBUTES: dict[tuple[str, str], Attribute] = {
    **{("pathlib.Path", name): rule for name, rule in _PARTS.items()},
    ("sys", "maxsize"): lambda value: literal(2**63 - 1),
    ("os", "sep"): lambda value: literal("/"),
    ("os", "linesep"): lambda value: literal("\n"),
    ("sys", "byteorder"): lambda value: literal("little"),
    ("uuid.UUID", "hex"): lambda value: text(constant(32.0)),
}
