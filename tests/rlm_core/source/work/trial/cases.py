"""Functions that the machine of a trial has to run as Python does: no arguments, each for some part of the language."""

from __future__ import annotations

import base64
import bisect
import copy
import csv
import datetime
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import statistics
import textwrap
import zlib
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum, auto
from fractions import Fraction
from functools import reduce
from typing import ClassVar, NamedTuple


def arithmetic():
    return [7 // 2, -7 % 3, 2**10, 1 << 5, 9 >> 1, 7 & 3, 7 | 8, 7 ^ 2, ~5, 7 / 2, not 3]


def comparisons():
    return 1 < 2 <= 2, 3 in [1, 3], "a" not in "bc", None is None, [1] == [1], (1, 2) < (1, 3)


def unpacking():
    a, (b, *c), d = 1, (2, 3, 4), 5
    a, b = b, a
    return a, b, c, d


def slices():
    a = list(range(10))
    a[2:4] = [7]
    del a[0]
    return a[::-1], "abc"[1:], a[-1]


def augmented():
    a, b, c = [1], "x", {}
    a += [2]
    b *= 3
    c["k"] = 1
    c["k"] += 4
    return a, b, c


def aliases():
    a = [1]
    b = a
    b += [2]
    b.append(3)
    return a


def loops():
    n = 0
    for i in range(9):
        if i == 2:
            continue
        if i == 7:
            break
        n += i
    else:
        n = -1
    while n > 3:
        n -= 2
    else:
        n += 100
    return n


def nested_exits():
    for i in range(5):
        for j in range(5):
            if i * j == 6:
                return i, j


def comprehensions():
    a = [i * j for i in range(4) if i % 2 for j in range(i)]
    return a, {i % 3 for i in a}, {i: str(i) for i in a}, sum(i for i in a)


def any_stops():
    seen = []
    any(seen.append(i) or i == 3 for i in range(9))
    return seen


def closures():
    n = 1

    def add(k=2):
        nonlocal n
        n += k
        return n

    add()
    return add(5), (lambda x, y=3: x * y)(2)


def recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(9)


def caches():
    @functools.lru_cache(None)
    def ways(n):
        return 1 if n < 2 else ways(n - 1) + ways(n - 2)

    return ways(40)


def exceptions():
    out = []
    for text in ("1", "x", "3"):
        try:
            out.append(int(text))
        except (ValueError, KeyError):
            out.append(None)
        finally:
            out.append("-")
    try:
        raise IndexError("no")
    except LookupError:
        return out


def classes():
    class Node:
        count = 0

        def __init__(self, value, next=None):
            self.value = value
            self.next = next

        def last(self):
            node = self
            while node.next is not None:
                node = node.next
            return node.value

    return Node(1, Node(2, Node(3))).last()


def containers():
    q = deque([1, 2], maxlen=3)
    q.appendleft(0)
    groups = defaultdict(list)
    for i in range(5):
        groups[i % 2].append(i)
    return (
        list(q),
        q.popleft(),
        dict(groups),
        Counter("abca").most_common(1),
        sorted(groups.items(), key=lambda p: -p[0]),
    )


def library():
    heap = []
    for i in (5, 1, 3):
        heapq.heappush(heap, i)
    return (
        heapq.heappop(heap),
        math.gcd(12, 18),
        reduce(lambda a, b: a * b, [1, 2, 3]),
        bisect.bisect([1, 3], 2),
        list(itertools.permutations("ab")),
        math.prod(range(1, 5)),
        max(3, 1),
        min([4, 2], key=lambda x: -x),
    )


def texts():
    name = "b"
    return f"a{name}{1 + 1}", "-".join(["x", "y"]), ["a", "b"], "abc".upper().replace("B", "x"), "a" * 3


def star():
    def g(a, *rest, scale=1):
        return a, rest, scale

    return g(1, *[2, 3], scale=4), [0, *range(3)], (*"ab",), {"a": 1, "b": 2}


def walrus():
    items = [3, 2, 1, 0]
    out = []
    while n := items.pop(0):
        out.append(n)
    return out


def iterators():
    it = iter([1, 2, 3])
    return (
        next(it),
        next(it),
        next(it, 0),
        next(it, 0),
        list(zip("ab", range(9))),
        list(enumerate("ab", 1)),
        dict(map(lambda p: p, [(1, 2)])),
    )


def sets():
    words = {"to", "be", "or", "not"}
    left = {3}
    left |= {4}
    return sorted(words), len(words | {"to"}), left.pop() in (3, 4), {1, 2} & {2, 3}, [n for n in {5}]


def changed_in_place():
    groups = {"a": [1]}
    first = groups["a"]
    groups["a"] += [2]
    return first, groups


def complex_numbers():
    z = complex(1, 2) * 1j
    return z, abs(3 + 4j), z.real, -z, z == complex(-2, 1)


def dates():
    day, months = datetime.date(2024, 1, 30), 0
    while day < datetime.date(2024, 6, 1):
        months += day.month != (day + datetime.timedelta(days=1)).month
        day += datetime.timedelta(days=1)
    late = datetime.datetime(2024, 1, 2, 3)
    return months, day.weekday(), (day - datetime.date(2024, 1, 1)).days, late.date(), late.hour, f"{day}"


def generators():
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    def pairs(items):
        for item in items:
            yield item, item
        yield from ("x", "y")

    first = []
    for n in naturals():
        if n * n > 50:
            break
        first.append(n)
    return first, list(pairs([1, 2])), next(naturals()), list(zip(naturals(), "ab"))


def generators_with_exits():
    log = []

    def numbers(n):
        log.append("begin")
        try:
            for i in range(n):
                if i == 3:
                    log.append("three")
                yield i
            else:
                yield "rest"
        finally:
            log.append("end")

    def walk(tree):
        if tree:
            left, value, right = tree
            yield from walk(left)
            yield value
            yield from walk(right)

    first = [n for n in numbers(2)]
    second = list(itertools.islice(numbers(9), 2))
    tree = ((None, 1, None), 2, ((None, 3, None), 4, None))
    primes = filter(lambda n: all(n % k for k in range(2, n)), itertools.count(2))
    return first, second, log[:3], list(walk(tree)), list(itertools.islice(primes, 6))


def pipelines():
    def naturals():
        n = 2
        while True:
            yield n
            n += 1

    def keep(source, holds):
        for item in source:
            if holds(item):
                yield item

    odd = keep(naturals(), lambda n: n % 2)
    return list(itertools.islice((n * n for n in keep(odd, lambda n: n % 3)), 4))


def data_classes():
    @dataclass
    class Line:
        name: str
        price: float
        count: int = 1
        tags: list = field(default_factory=list)
        unit: ClassVar[str] = "piece"

        def total(self):
            return self.price * self.count

    @dataclass(frozen=True, order=True)
    class Point:
        x: int
        y: int = 0

        def __post_init__(self):
            assert self.x >= 0

        def __add__(self, other):
            return Point(self.x + other.x, self.y + other.y)

    a, b = Line("a", 1.5, 2), Line("b", 2.0)
    a.tags.append("t")
    points = {Point(1, 2), Point(1, 2), Point(0)}
    return (
        a.total(), b.tags, a == Line("a", 1.5, 2, ["t"]), asdict(a), replace(b, count=3).count, str(Point(1))[-15:],
        len(points), sorted(points)[0].y, max(points).x, Point(1) + Point(2, 5) == Point(3, 5), Line.unit,
    )  # fmt: skip


def named_tuples():
    Lot = namedtuple("Lot", "qty cost")

    class Pixel(NamedTuple):
        x: int
        y: int = 3

        def flipped(self):
            return Pixel(self.y, self.x)

    lot = Lot(3, cost=2.5)
    qty, cost = lot
    return (
        qty * cost, lot[0], lot._replace(qty=1).qty, lot == (3, 2.5), len(lot), {lot: 1}[Lot(3, 2.5)], lot < Lot(4, 0),
        tuple(Pixel(1).flipped()), sorted([Lot(2, 1), Lot(1, 2)])[0].cost, lot._asdict(), (3, 2.5) == lot,
    )  # fmt: skip


def enumerations():
    class Color(Enum):
        RED = 1
        GREEN = auto()

        def warm(self):
            return self is Color.RED

    order = {Color.RED: "r", Color.GREEN: "g"}
    return (
        [color.name for color in Color], Color(2).name, Color["RED"].value, Color.RED.warm(), order[Color.GREEN],
        len(Color), str(Color.RED), Color.RED == Color.GREEN, Color.RED in (Color.RED,),
    )  # fmt: skip


def inheritance():
    class Shape(ABC):
        sides = 0

        def __init__(self, name):
            self.name = name

        @abstractmethod
        def area(self): ...

        def label(self):
            return f"{self.name}:{self.area()}"

    class Square(Shape):
        sides = 4

        def __init__(self, side):
            super().__init__("square")
            self.side = side

        def area(self):
            return self.side**2

        @property
        def half(self):
            return self.side / 2

        @classmethod
        def unit(cls):
            return cls(1)

        @staticmethod
        def double(n):
            return 2 * n

    class Big(Square):
        def area(self):
            return 10 * super().area()

    big = Big(3)
    return big.label(), big.sides, big.half, Square.unit().area(), Big.double(4), isinstance(big, Shape), Shape.sides


def special_methods():
    class Bag:
        def __init__(self, items=()):
            self.items = list(items)

        def __len__(self):
            return len(self.items)

        def __iter__(self):
            return iter(self.items)

        def __getitem__(self, key):
            return self.items[key]

        def __setitem__(self, key, value):
            self.items[key] = value

        def __contains__(self, item):
            return item in self.items

        def __add__(self, other):
            return Bag(self.items + other.items)

        def __mul__(self, n):
            return Bag(self.items * n)

        __rmul__ = __mul__

        def __neg__(self):
            return Bag(-item for item in self.items)

        def __eq__(self, other):
            return self.items == other.items

        def __lt__(self, other):
            return len(self) < len(other)

        def __call__(self, n):
            return n + len(self)

        def __str__(self):
            return f"Bag of {len(self)}"

        def __bool__(self):
            return bool(self.items)

    class Countdown:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    a, b = Bag([1, 2]), Bag([3])
    a[0] = 7
    heap = [a, b]
    heapq.heapify(heap)
    return (
        len(a), list(a + b), a[1], 2 in a, 5 in a, list(2 * b), list(-a), a == Bag([7, 2]), b < a, a(10), str(a),
        f"{b}", bool(Bag()), heap[0][0], list(Countdown(3)), sum(Countdown(4)), [*a], max(heap)[0],
    )  # fmt: skip


def own_exceptions():
    class Short(ValueError):
        def __init__(self, missing):
            super().__init__(f"short by {missing}")
            self.missing = missing

    class Locked(Exception): ...

    out = []
    for amount in (5, 20, -1, 0):
        try:
            if amount > 10:
                raise Short(amount - 10)
            if amount < 0:
                raise Locked
            out.append(10 / amount)
        except Short as error:
            out.append((error.missing, str(error)))
        except (Locked, KeyError):
            out.append("locked")
        except ArithmeticError as error:
            out.append(str(error)[:8])
    try:
        try:
            raise Short(1)
        except ValueError:
            raise
    except Exception as error:
        out.append(error.missing)
    with suppress(KeyError, Locked):
        {}["x"]
    return out


def contexts():
    log = []

    class Opened:
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, kind, error, trace):
            log.append("out")
            return kind is not None

    @contextmanager
    def transaction(store):
        kept = dict(store)
        try:
            yield store
        except ValueError:
            store.clear()
            store.update(kept)

    with Opened() as opened, Opened():
        log.append(opened is not None)
        raise KeyError
    store = {"a": 1}
    with transaction(store) as inner:
        inner["a"] = 2
        raise ValueError("no")
    with transaction(store) as inner:
        inner["b"] = 3
    return log, store


def decorators():
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args, **options):
            wrapper.calls += 1
            return function(*args, **options)

        wrapper.calls = 0
        return wrapper

    def times(n):
        def decorate(function):
            return lambda *args: [function(*args) for _ in range(n)]

        return decorate

    @counted
    def fib(n, *, step=1):
        return n if n < 2 else fib(n - step) + fib(n - 2, step=step)

    @times(2)
    def hello(name):
        return f"hello {name}"

    return fib(8), fib.calls, hello("x")


def matches():
    @dataclass
    class Move:
        x: int
        y: int

    out = []
    for command in (
        ["go", "north"], ["go"], ["pick", "a", "b"], {"op": "add", "n": 2}, 7, None, "quit", Move(0, 5), Move(1, 2), 2.5
    ):  # fmt: skip
        match command:
            case ["go", direction]:
                out.append(direction)
            case ["go"] | None:
                out.append("where")
            case ["pick", *things]:
                out.append(things)
            case {"op": "add", "n": n, **rest}:
                out.append((n, rest))
            case int(n) if n > 5:
                out.append(n)
            case "quit":
                out.append("bye")
            case Move(x=0, y=y):
                out.append(y)
            case Move(x, y):
                out.append((x, y))
            case _:
                out.append("?")
    return out


def formats():
    value, name, when = 3.14159, "pi", datetime.datetime(2024, 3, 5, 14, 7)
    return (
        f"{value:8.2f}|{name:>5}|{name!r}|{1234567:,}|{255:#x}|{when:%Y-%m-%d}|{value:.{2}f}",
        "{:<6}|{:^6}|{:>6}".format("a", "b", 3), "{x}-{y:03d}".format(x=1, y=2), "{0}{1}{0}".format("a", "b"),
        "%s has %5.1f%% of %03d" % (name, value, 7), "%(a)s" % {"a": 1}, format(7, "b"), when.strftime("%d.%m. %H:%M"),
        repr("x"), "a-b".encode().decode().title(), "abc".translate(str.maketrans("ab", "xy")),
    )  # fmt: skip


def exact_numbers():
    price = Decimal("19.99") * 3
    return (
        price.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP), sum([Decimal("0.1")] * 3), Decimal(2).sqrt() > 1,
        Fraction(1, 3) + Fraction(1, 6), sum(Fraction(1, n) for n in range(1, 6)), Fraction(6, 4).numerator,
        round(Fraction(7, 2)), int(Decimal("7.9")), max(Decimal("1"), Decimal("2")), str(price),
    )  # fmt: skip


def records():
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["name", "n"])
    writer.writerows([["a", 1], ["b,c", 2]])
    file.seek(0)
    rows = list(csv.DictReader(file))
    text = json.dumps({"rows": rows, "ok": True}, sort_keys=True)
    return rows, text, json.loads(text)["rows"][1]["n"], list(csv.reader(["x;y"], delimiter=";"))


def hashes():
    digest = hashlib.sha256(b"abc")
    digest.update((7).to_bytes(2, "big"))
    return (
        digest.hexdigest(), hashlib.md5("x".encode()).digest()[0], zlib.crc32(b"abc"), base64.b64encode(b"hello"),
        int.from_bytes(b"\x01\x02", "big"), bytes.fromhex("0aff"),
    )  # fmt: skip


def helpers():
    rows = [("b", 2), ("a", 3), ("c", 1)]
    nested = [[1, 2], {"k": [3]}]
    copied = copy.deepcopy(nested)
    copied[1]["k"].append(4)
    recent = OrderedDict(a=1, b=2)
    recent.move_to_end("a")
    double = functools.partial(operator.mul, 2)
    by_length = functools.cmp_to_key(lambda x, y: len(x) - len(y))
    return (
        sorted(rows, key=operator.itemgetter(1)), nested, copied, list(recent), recent.popitem(last=False), double(4),
        sorted(["ccc", "a", "bb"], key=by_length), list(itertools.chain.from_iterable([[1], [2, 3]])),
        dict.fromkeys("ab", 0), list(map(str.upper, "xy")), reduce(operator.add, [1, 2, 3]),
        statistics.median([3, 1, 2]), statistics.mean([1, 2]), textwrap.wrap("a bb ccc dddd", 5), textwrap.dedent("  x"),
        [list(group) for _, group in itertools.groupby([1, 1, 2])],
    )  # fmt: skip


def buffers():
    flags = bytearray(b"\x01") * 30
    for n in range(2, 6):
        if flags[n]:
            flags[n * n :: n] = bytes(len(range(n * n, 30, n)))
    return sum(flags), flags.find(b"\x00"), flags[2:5]


def calendar():
    holidays = {date(2024, 1, 1), date(2024, 5, 1)}
    day, open_days = date(2023, 12, 30), Counter()
    while day <= date(2024, 2, 2):
        if day.weekday() < 5 and day not in holidays:
            open_days[day.strftime("%Y-%m")] += 1
        day += timedelta(days=1)
    parsed = datetime.datetime.strptime("2024-02-29 10:00", "%Y-%m-%d %H:%M")
    return dict(open_days), parsed.hour, date.fromisoformat("2024-03-01") - parsed.date(), parsed.date().isoformat()
