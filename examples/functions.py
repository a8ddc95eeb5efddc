"""A small statistics and text toolbox: functions of different cost that call each other."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections import Counter
from dataclasses import dataclass, field


def mean(values: list[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def variance(values: list[float]) -> float:
    """The variance around the mean."""
    center = mean(values)
    return sum((value - center) ** 2 for value in values) / len(values)


def standardize(values: list[float]) -> list[float]:
    """Shift and scale values to mean 0 and standard deviation 1."""
    center, scale = mean(values), math.sqrt(variance(values))
    return [(value - center) / scale for value in values]


def correlation(xs: list[float], ys: list[float]) -> float:
    """Pearson's correlation of two samples."""
    return mean([x * y for x, y in zip(standardize(xs), standardize(ys), strict=True)])


def clamp(value: float, low: float, high: float) -> float:
    """The value, moved into [low, high]."""
    return max(low, min(high, value))


def primes(limit: int) -> list[int]:
    """All primes below ``limit``, by the sieve of Eratosthenes."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for candidate in range(2, math.isqrt(limit) + 1):
        if sieve[candidate]:
            sieve[candidate * candidate :: candidate] = bytes(len(range(candidate * candidate, limit, candidate)))
    return [number for number, is_prime in enumerate(sieve) if is_prime]


def multiply(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    """The product of two matrices."""
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def power(matrix: list[list[float]], exponent: int) -> list[list[float]]:
    """A square matrix to a whole power, by squaring."""
    result = [[float(row == column) for column in range(len(matrix))] for row in range(len(matrix))]
    while exponent:
        if exponent & 1:
            result = multiply(result, matrix)
        matrix = multiply(matrix, matrix)
        exponent >>= 1
    return result


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def most_common_words(text: str, count: int = 10) -> list[tuple[str, int]]:
    """The most frequent words and how often they occur."""
    return Counter(words(text)).most_common(count)


def edit_distance(left: str, right: str) -> int:
    """Levenshtein's distance of two strings."""
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        current = [i]
        for j, b in enumerate(right, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (a != b)))
        previous = current
    return previous[-1]


def read_table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text, by column name."""
    return list(csv.DictReader(io.StringIO(text)))


def fingerprint(chunks: list[bytes]) -> str:
    """A SHA-256 digest of all chunks."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


@dataclass
class Graph:
    """A directed graph as adjacency lists."""

    edges: dict[str, list[str]] = field(default_factory=dict)

    def connect(self, source: str, target: str) -> None:
        """Add an edge."""
        self.edges.setdefault(source, []).append(target)
        self.edges.setdefault(target, [])

    def reachable(self, start: str) -> set[str]:
        """All nodes that can be reached from ``start``."""
        seen, stack = {start}, [start]
        while stack:
            for target in self.edges[stack.pop()]:
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return seen

    def is_connected(self) -> bool:
        """Whether some node reaches all others."""
        return any(len(self.reachable(node)) == len(self.edges) for node in self.edges)
