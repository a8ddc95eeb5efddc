"""Functions that the machine of a trial has to run as Python does: no arguments, each for some part of the language."""

from __future__ import annotations

import bisect
import datetime
import functools
import heapq
import itertools
import math
from collections import Counter, defaultdict, deque
from functools import reduce


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
