"""Rules for ``json``, ``pickle``, ``csv``, ``struct``, ``copy``, hashes and compression."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

from ..domain import object_sizes
from ..domain.quantities import ONE, ZERO, Quantity, constant
from ..domain.values import NONE, REPEATED, UNKNOWN, Call, Entries, Value, number_of
from .rules import (
    BOOL,
    INT,
    Attribute,
    Rule,
    argument,
    bare,
    container,
    fixed,
    lazy,
    text,
)
from .unit_costs import each, primitive, seconds

_CONTAINERS = frozenset({"list", "tuple", "dict", "set", "frozenset", "deque"})
_MOST_DEPTH = 6
_PAIR, _CSV_LINE = 12.0, 30.0  # characters of a pair in an address, and of a line of a table
_REPETITIVE = 0.1  # of the size is left after compression
_REPEATED_SIZE = 0.003  # the same where a part is repeated very often
# Characters that the usual JSON document has per value.
_JSON_VALUE = 9.0


def leaves(call: Call, value: Value, depth: int = 0) -> tuple[Quantity, Quantity]:
    """The numbers and texts inside a value, and the characters of its texts."""
    if value.kind in ("str", "bytes"):
        return ONE, value.size if value.size is not None else constant(1.0, 40.0, 8.0)
    if (value.kind not in _CONTAINERS and value.kind != "unknown") or depth >= _MOST_DEPTH:
        return ONE, ZERO
    if value.kind == "unknown":
        return (call.length(value), ZERO) if not depth else (ONE, ZERO)
    if value.kind == "dict" and isinstance(value.payload, Entries) and value.payload.pairs:
        parts, characters = ONE, ZERO
        for key, part in value.payload.pairs:
            more, longer = leaves(call, part, depth + 1)
            parts = parts + ONE + more
            characters = characters + constant(len(key) if isinstance(key, str) else 4) + longer
        return parts, characters
    count = call.length(value)
    parts, characters = leaves(call, value.item or UNKNOWN, depth + 1)
    if value.kind == "dict":
        more, longer = leaves(call, value.entry or UNKNOWN, depth + 1)
        parts, characters = parts + more, characters + longer
    return ONE + count * parts, count * characters


def _dumps(call: Call) -> Value:
    value = argument(call, 0, "obj")
    parts, characters = leaves(call, value)
    pretty = argument(call, 99, "indent")
    name = "json.dumps.indent" if pretty is not UNKNOWN and pretty.kind != "none" else "json.dumps"
    call.spend(seconds(name, parts) + characters.times(each("json.dumps.text")))
    size = parts.times(6.0) + characters
    # The encoder joins a list of pieces.
    call.allocate(parts.times(16.0) + size)
    return text(size)


def _loads(call: Call) -> Value:
    size = call.length(argument(call, 0, "s"))
    call.spend(seconds("json.loads", size))
    parts = size.times(1 / _JSON_VALUE)
    return Value("unknown", size=parts, bytes=parts.times(60.0))


def _dump(call: Call) -> Value:
    value = _dumps(call)
    call.spend(seconds("file.write", value.size))
    return NONE


def _load(call: Call) -> Value:
    call.spend(primitive("json.loads"))
    call.unknown(ONE)
    return UNKNOWN


def _pickled(call: Call) -> Value:
    parts, characters = leaves(call, argument(call, 0, "obj"))
    call.spend(seconds("pickle.dumps", parts) + characters.times(each("concat.text")))
    return text(parts.times(4.0) + characters, "bytes")


def _unpickled(call: Call) -> Value:
    size = call.length(argument(call, 0, "data"))
    call.spend(seconds("pickle.loads", size))
    return Value("unknown", size=size.times(0.25), bytes=size.times(8.0))


def _copy(call: Call) -> Value:
    value = argument(call, 0)
    call.spend(primitive("copy.copy"))
    if value.kind in ("list", "dict", "set", "deque"):
        count = call.length(value)
        call.spend(seconds("dict.copy" if value.kind == "dict" else "list.copy", count))
        return replace(value, bytes=object_sizes.container(value.kind, count))
    return bare(value)


def _deepcopy(call: Call) -> Value:
    value = argument(call, 0)
    parts, _ = leaves(call, value)
    name = "copy.deepcopy.nested" if value.item is not None and value.item.kind in _CONTAINERS else "copy.deepcopy"
    call.spend(seconds(name, parts))
    held = _held(call, value)
    # The memo of the copies has an entry for each container.
    call.allocate(held.times(0.2))
    return replace(value, bytes=held)


def _held(call: Call, value: Value, depth: int = 0) -> Quantity:
    """The bytes of a copy of a value and of the containers in it; numbers and texts are shared."""
    if value.kind not in _CONTAINERS or depth >= _MOST_DEPTH:
        return ZERO
    count = call.length(value)
    held = object_sizes.container(value.kind, count)
    for part in (value.item, value.entry):
        if part is not None and part.kind in _CONTAINERS:
            held = held + count * _held(call, part, depth + 1)
    return held


# Hashes: an object remembers only its type, and ``update`` reads its argument.


def _hash(name: str) -> Rule:
    cost = f"hashlib.{name}"

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        if call.args:
            call.spend(call.length(call.args[0]).times(each(cost)))
        return Value("object", name=f"hashlib.{name}", bytes=constant(80.0))

    return rule


def _hash_update(name: str) -> Rule:
    cost = f"hashlib.{name}"

    def rule(call: Call) -> Value:
        value = argument(call, 0)
        call.spend(constant(primitive("call.builtin")) + call.length(value).times(each(cost)))
        return NONE

    return rule


def _new_hash(call: Call) -> Value:
    name = argument(call, 0, "name").constant
    known = name if isinstance(name, str) and name in _HASHES else "sha256"
    call.spend(primitive(f"hashlib.{known}"))
    if len(call.args) > 1:
        call.spend(call.length(call.args[1]).times(each(f"hashlib.{known}")))
    return Value("object", name=f"hashlib.{known}", bytes=constant(80.0))


def _derived(call: Call) -> Value:
    """``pbkdf2_hmac(hash, password, salt, iterations)``."""
    count = number_of(argument(call, 3, "iterations"))
    call.spend(seconds("hashlib.pbkdf2_hmac", count if count is not None else constant(1.0, 1e6, 1e5)))
    return text(constant(32.0), "bytes")


def _scrypt(call: Call) -> Value:
    factors = [number_of(argument(call, 99, name)) or ONE for name in ("n", "r", "p")]
    work = factors[0] * factors[1] * factors[2]
    call.spend(seconds("hashlib.scrypt", work))
    call.allocate(factors[0] * factors[1].times(128.0))
    return text(constant(64.0), "bytes")


def _hmac(call: Call) -> Value:
    call.spend(primitive("hmac.new"))
    if len(call.args) > 1:
        call.spend(call.length(call.args[1]).times(each("hashlib.sha256")))
    return Value("object", name="hmac.HMAC")


def _checksum(cost: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(seconds(cost, call.length(argument(call, 0))))
        return INT

    return rule


def converting(cost: str, low: float, high: float, kind: str = "bytes") -> Rule:
    """A rule of a function of bytes that returns a text of ``low`` to ``high`` times their size."""

    def rule(call: Call) -> Value:
        size = call.length(argument(call, 0, "data", "s"))
        call.spend(seconds(cost, size))
        return text(size.times(low) if low == high else size * constant(low, high, (low * high) ** 0.5), kind)

    return rule


def _repeats(data: Value) -> bool:
    """Whether bytes are a short part over and over, as those of examples often are."""
    if data.known and isinstance(data.constant, (bytes, str)):
        content = data.constant.encode("utf-8", "surrogatepass") if isinstance(data.constant, str) else data.constant
        return len(zlib.compress(content, 1)) < _REPETITIVE * len(content)
    return data.payload is REPEATED


def _compressing(module: str) -> Rule:
    """Compression by level: the levels cost up to several times as much."""

    def rule(call: Call) -> Value:
        data = argument(call, 0, "data")
        size = call.length(data)
        level = argument(call, 1, "level", "compresslevel")
        known = level.constant if isinstance(level.constant, int) else None
        fast = module == "zlib" and known is not None and 0 < known <= 3
        if module == "zlib" and _repeats(data):
            call.spend(seconds("zlib.compress.repeated", size))
            return text(size.times(_REPEATED_SIZE), "bytes")
        call.spend(seconds(f"{module}.compress.fast" if fast else f"{module}.compress", size))
        call.allocate(constant({"zlib": 270e3, "bz2": 7.6e6, "lzma": 94e6}.get(module, 270e3)))
        return text(size * constant(0.01, 1.0, 0.3), "bytes")

    return rule


# struct and csv.


def _pack(call: Call) -> Value:
    call.spend(constant(primitive("struct.pack")) + constant(len(call.args)).times(each("struct.pack")))
    layout = argument(call, 0).constant
    try:
        size = struct.calcsize(layout) if isinstance(layout, str) and len(layout) < 100 else 8
    except struct.error:
        size = 8
    return text(constant(size), "bytes")


def _unpack(call: Call) -> Value:
    call.spend(primitive("struct.pack"))
    return Value("tuple", item=INT, size=constant(1.0, 10.0, 2.0), bytes=constant(60.0))


def _csv_reader(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    if value.name == "io.StringIO":
        count = count.times(1 / _CSV_LINE)
    call.spend(primitive("csv.reader"))
    line = value.item.size if value.item is not None and value.item.size is not None else constant(40.0)
    row = container(
        "list", constant(1.0, 20.0, 6.0), Value("str", size=constant(6.0), bytes=constant(55.0)), fresh=True
    )
    return lazy(count, row, line.times(each("csv.reader")))


def _csv_writer(name: str) -> Rule:
    return fixed("csv.reader", Value("object", name=name))


def _written(row: Value, width: Quantity) -> Quantity:
    """Seconds to write a row; formatting a float takes longer than copying text."""
    floats = 1.0 if row.item is not None and row.item.kind == "float" else 0.0
    if isinstance(row.payload, tuple) and row.payload:
        floats = sum(isinstance(part, Value) and part.kind == "float" for part in row.payload) / len(row.payload)
    return seconds("csv.writerow", width) + width.times(floats * primitive("csv.writerow.float"))


def _write_row(call: Call) -> Value:
    row = argument(call, 0)
    call.spend(_written(row, call.length(row)))
    return INT


def _write_rows(call: Call) -> Value:
    value = argument(call, 0)
    count = call.consume(value)
    row = value.item or UNKNOWN
    call.spend(count * _written(row, row.size if row.size is not None else constant(6.0)))
    return NONE


def _urlencode(call: Call) -> Value:
    pairs = call.length(argument(call, 0, "query"))
    call.spend(pairs.times(primitive("urllib.parse.quote")))
    return text(pairs.times(_PAIR))


def _address(kind: str) -> Value:
    """The parts of an address."""
    return Value("object", name=kind, bytes=constant(400.0))


_HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512", "blake2b", "blake2s")
FUNCTIONS: dict[str, Rule] = {
    "json.dumps": _dumps,
    "json.loads": _loads,
    "json.dump": _dump,
    "json.load": _load,
    "pickle.dumps": _pickled,
    "pickle.loads": _unpickled,
    "pickle.dump": _pickled,
    "pickle.load": _load,
    "marshal.dumps": _pickled,
    "marshal.loads": _unpickled,
    "copy.copy": _copy,
    "copy.deepcopy": _deepcopy,
    **{f"hashlib.{name}": _hash(name) for name in _HASHES},
    "hashlib.new": _new_hash,
    "hashlib.pbkdf2_hmac": _derived,
    "hashlib.scrypt": _scrypt,
    "hmac.new": _hmac,
    "hmac.compare_digest": fixed("call.builtin", BOOL),
    "zlib.crc32": _checksum("zlib.crc32"),
    "zlib.adler32": _checksum("zlib.crc32"),
    "binascii.crc32": _checksum("zlib.crc32"),
    **{f"{name}.compress": _compressing(name) for name in ("zlib", "bz2", "lzma")},
    "gzip.compress": _compressing("zlib"),
    **{f"{name}.decompress": converting(f"{name}.decompress", 1.0, 20.0) for name in ("zlib", "bz2", "lzma")},
    "gzip.decompress": converting("zlib.decompress", 1.0, 20.0),
    "base64.b64encode": converting("base64.b64encode", 4 / 3, 4 / 3),
    "base64.urlsafe_b64encode": converting("base64.b64encode", 4 / 3, 4 / 3),
    "base64.standard_b64encode": converting("base64.b64encode", 4 / 3, 4 / 3),
    "base64.b64decode": converting("base64.b64decode", 0.75, 0.75),
    "base64.urlsafe_b64decode": converting("base64.b64decode", 0.75, 0.75),
    "base64.b32encode": converting("base64.b32encode", 1.6, 1.6),
    "base64.b16encode": converting("bytes.hex", 2.0, 2.0),
    "base64.b85encode": converting("base64.b32encode", 1.25, 1.25),
    "base64.encodebytes": converting("base64.b64encode", 1.37, 1.37),
    "binascii.hexlify": converting("bytes.hex", 2.0, 2.0),
    "binascii.unhexlify": converting("bytes.hex", 0.5, 0.5),
    "urllib.parse.quote": converting("urllib.parse.quote", 1.0, 3.0, "str"),
    "urllib.parse.quote_plus": converting("urllib.parse.quote", 1.0, 3.0, "str"),
    "urllib.parse.unquote": converting("urllib.parse.quote", 0.33, 1.0, "str"),
    "urllib.parse.urlparse": fixed("urllib.parse.urlparse", _address("urllib.parse.ParseResult")),
    "urllib.parse.urlsplit": fixed("urllib.parse.urlparse", _address("urllib.parse.SplitResult")),
    "urllib.parse.urljoin": fixed("urllib.parse.urlparse", Value("str")),
    "urllib.parse.urlencode": _urlencode,
    "urllib.parse.parse_qs": fixed("urllib.parse.parse_qs", Value("dict", bytes=constant(450.0))),
    "urllib.parse.parse_qsl": fixed("urllib.parse.parse_qs", Value("list")),
    "struct.pack": _pack,
    "struct.unpack": _unpack,
    "struct.unpack_from": _unpack,
    "struct.pack_into": _pack,
    "struct.calcsize": fixed("call.builtin", INT),
    "struct.Struct": fixed("object.init", Value("object", name="struct.Struct")),
    "csv.reader": _csv_reader,
    "csv.DictReader": _csv_reader,
    "csv.writer": _csv_writer("csv.writer()"),
    "csv.DictWriter": _csv_writer("csv.writer()"),
}
_DIGESTS = tuple(f"hashlib.{name}" for name in _HASHES)
METHODS: dict[tuple[str, str], Rule] = {
    **{(f"hashlib.{name}", "update"): _hash_update(name) for name in _HASHES},
    **{(name, "digest"): fixed("hashlib.digest", text(constant(32.0), "bytes")) for name in (*_DIGESTS, "hmac.HMAC")},
    **{(name, "hexdigest"): fixed("hashlib.digest", text(constant(64.0))) for name in (*_DIGESTS, "hmac.HMAC")},
    **{(name, "copy"): fixed("hashlib.digest", Value("object", name=name)) for name in _DIGESTS},
    ("hmac.HMAC", "update"): _hash_update("sha256"),
    ("struct.Struct", "pack"): _pack,
    ("struct.Struct", "unpack"): _unpack,
    ("struct.Struct", "unpack_from"): _unpack,
    ("csv.writer()", "writerow"): _write_row,
    ("csv.writer()", "writerows"): _write_rows,
    ("csv.writer()", "writeheader"): fixed("csv.reader", NONE),
}
ATTRIBUTES: dict[tuple[str, str], Attribute] = {}
