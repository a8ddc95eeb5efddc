"""Ten tasks of making a slow Python function faster, each with two candidate rewrites; see ``agent_loop``.

The tasks were written before any of them was predicted or measured, and have not been changed since. A text is a whole
module that defines ``name``; ``arguments`` makes the arguments of one call.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """A slow function and two rewrites of it, which return the same."""

    name: str
    arguments: Callable[[random.Random], tuple[Any, ...]]
    slow: str
    first: str
    second: str


def _numbers(count: int, most: int) -> Callable[[random.Random], tuple[Any, ...]]:
    return lambda source: ([source.randrange(most) for _ in range(count)],)


def _words(source: random.Random) -> tuple[Any, ...]:
    words = ["".join(source.choices("abcdefghij", k=3)) for _ in range(400)]
    return (" ".join(source.choices(words, k=4000)),)


def _matrices(source: random.Random) -> tuple[Any, ...]:
    return tuple([[source.random() for _ in range(60)] for _ in range(60)] for _ in range(2))


TASKS = (
    Task(
        "unique_in_order",
        _numbers(2000, 1000),
        slow='''\
def unique_in_order(values):
    """The distinct values, in the order in which they first appear."""
    result = []
    for value in values:
        if value not in result:
            result.append(value)
    return result
''',
        first='''\
def unique_in_order(values):
    """The distinct values, in the order in which they first appear."""
    seen = set()
    result = []
    for value in values:
        if value not in seen:
            seen.add(value)
            result.append(value)
    return result
''',
        second='''\
def unique_in_order(values):
    """The distinct values, in the order in which they first appear."""
    return list(dict.fromkeys(values))
''',
    ),
    Task(
        "moving_sums",
        lambda source: ([source.randrange(100) for _ in range(5000)], 50),
        slow='''\
def moving_sums(values, width):
    """The sums of all windows of a width."""
    return [sum(values[i : i + width]) for i in range(len(values) - width + 1)]
''',
        first='''\
from itertools import accumulate


def moving_sums(values, width):
    """The sums of all windows of a width."""
    totals = [0, *accumulate(values)]
    return [end - start for start, end in zip(totals, totals[width:])]
''',
        second='''\
from collections import deque


def moving_sums(values, width):
    """The sums of all windows of a width."""
    window = deque()
    total = 0
    result = []
    for value in values:
        window.append(value)
        total += value
        if len(window) > width:
            total -= window.popleft()
        if len(window) == width:
            result.append(total)
    return result
''',
    ),
    Task(
        "word_counts",
        _words,
        slow='''\
def word_counts(text):
    """How often each word of a text occurs."""
    words = text.split()
    return {word: words.count(word) for word in set(words)}
''',
        first='''\
from collections import Counter


def word_counts(text):
    """How often each word of a text occurs."""
    return dict(Counter(text.split()))
''',
        second='''\
def word_counts(text):
    """How often each word of a text occurs."""
    words = sorted(text.split())
    counts = {}
    start = 0
    for i in range(1, len(words) + 1):
        if i == len(words) or words[i] != words[start]:
            counts[words[start]] = i - start
            start = i
    return counts
''',
    ),
    Task(
        "count_pairs",
        lambda source: ([source.randrange(2000) for _ in range(1000)], 2000),
        slow='''\
def count_pairs(values, target):
    """The number of pairs with a sum."""
    count = 0
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] + values[j] == target:
                count += 1
    return count
''',
        first='''\
def count_pairs(values, target):
    """The number of pairs with a sum."""
    count = 0
    for i, value in enumerate(values):
        count += values[i + 1 :].count(target - value)
    return count
''',
        second='''\
def count_pairs(values, target):
    """The number of pairs with a sum."""
    seen = {}
    count = 0
    for value in values:
        count += seen.get(target - value, 0)
        seen[value] = seen.get(value, 0) + 1
    return count
''',
    ),
    Task(
        "primes_below",
        lambda source: (5000,),
        slow='''\
def primes_below(limit):
    """The prime numbers below a limit."""
    primes = []
    for number in range(2, limit):
        if all(number % divisor for divisor in range(2, number)):
            primes.append(number)
    return primes
''',
        first='''\
def primes_below(limit):
    """The prime numbers below a limit."""
    is_prime = bytearray([1]) * limit
    is_prime[:2] = b"\\0\\0"
    for number in range(2, int(limit**0.5) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return [number for number in range(limit) if is_prime[number]]
''',
        second='''\
def primes_below(limit):
    """The prime numbers below a limit."""
    primes = []
    for number in range(2, limit):
        for prime in primes:
            if prime * prime > number:
                primes.append(number)
                break
            if number % prime == 0:
                break
        else:
            primes.append(number)
    return primes
''',
    ),
    Task(
        "mask_digits",
        lambda source: ("".join(source.choices("abcdefghijklmnop0123456789 ", k=5000)),),
        slow='''\
def mask_digits(text):
    """A text with # in place of its digits."""
    result = ""
    for i in range(len(text)):
        if text[i] in "0123456789":
            result = result + "#"
        else:
            result = result + text[i]
    return result
''',
        first='''\
def mask_digits(text):
    """A text with # in place of its digits."""
    return "".join("#" if character in "0123456789" else character for character in text)
''',
        second='''\
def mask_digits(text):
    """A text with # in place of its digits."""
    for digit in "0123456789":
        text = text.replace(digit, "#")
    return text
''',
    ),
    Task(
        "stairs",
        lambda source: (18,),
        slow='''\
def stairs(steps):
    """In how many ways one can climb stairs by one, two or three steps at a time."""
    if steps < 0:
        return 0
    if steps == 0:
        return 1
    return stairs(steps - 1) + stairs(steps - 2) + stairs(steps - 3)
''',
        first='''\
def stairs(steps):
    """In how many ways one can climb stairs by one, two or three steps at a time."""
    known = {}

    def ways(left):
        if left < 0:
            return 0
        if left == 0:
            return 1
        if left not in known:
            known[left] = ways(left - 1) + ways(left - 2) + ways(left - 3)
        return known[left]

    return ways(steps)
''',
        second='''\
def stairs(steps):
    """In how many ways one can climb stairs by one, two or three steps at a time."""
    before, last, ways = 0, 0, 1
    for _ in range(steps):
        before, last, ways = last, ways, before + last + ways
    return ways
''',
    ),
    Task(
        "flattened",
        lambda source: ([[source.randrange(100) for _ in range(10)] for _ in range(500)],),
        slow='''\
def flattened(lists):
    """The items of all lists in one list."""
    return sum(lists, [])
''',
        first='''\
def flattened(lists):
    """The items of all lists in one list."""
    result = []
    for part in lists:
        result.extend(part)
    return result
''',
        second='''\
def flattened(lists):
    """The items of all lists in one list."""
    return [item for part in lists for item in part]
''',
    ),
    Task(
        "product",
        _matrices,
        slow='''\
def product(a, b):
    """The product of two square matrices."""
    size = len(a)
    result = []
    for i in range(size):
        row = []
        for j in range(size):
            total = 0.0
            for k in range(size):
                total = total + a[i][k] * b[k][j]
            row.append(total)
        result.append(row)
    return result
''',
        first='''\
def product(a, b):
    """The product of two square matrices."""
    size = len(a)
    result = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for k in range(size):
            factor = a[i][k]
            for j in range(size):
                result[i][j] += factor * b[k][j]
    return result
''',
        second='''\
from operator import mul


def product(a, b):
    """The product of two square matrices."""
    columns = list(zip(*b))
    return [[sum(map(mul, row, column), 0.0) for column in columns] for row in a]
''',
    ),
    Task(
        "smallest",
        lambda source: ([source.random() for _ in range(20000)], 10),
        slow='''\
def smallest(values, count):
    """The smallest values, in their order of size."""
    rest = list(values)
    result = []
    for _ in range(count):
        value = min(rest)
        rest.remove(value)
        result.append(value)
    return result
''',
        first='''\
def smallest(values, count):
    """The smallest values, in their order of size."""
    return sorted(values)[:count]
''',
        second='''\
import heapq


def smallest(values, count):
    """The smallest values, in their order of size."""
    return heapq.nsmallest(count, values)
''',
    ),
)
