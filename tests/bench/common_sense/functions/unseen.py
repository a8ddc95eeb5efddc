"""Functions written after the analysis was finished, as a check on code that it was not made for."""

import base64
import binascii
import bisect
import collections
import colorsys
import csv
import datetime
import decimal
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import pickle
import random
import re
import statistics
import string
import struct
import textwrap
import urllib.parse
import uuid
import zlib
from collections import ChainMap, Counter, defaultdict, deque, namedtuple
from dataclasses import asdict, dataclass, field


def leap_years():
    return [year for year in range(1, 10_000) if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)]


def fizz_buzz():
    lines = []
    for i in range(1, 10_001):
        if i % 15 == 0:
            lines.append("FizzBuzz")
        elif i % 3 == 0:
            lines.append("Fizz")
        elif i % 5 == 0:
            lines.append("Buzz")
        else:
            lines.append(str(i))
    return "\n".join(lines)


def savings_by_year():
    balance = 1_000.0
    history = []
    for month in range(1, 12 * 40 + 1):
        balance *= 1 + 0.05 / 12
        if month % 12 == 0:
            history.append(round(balance, 2))
    return history


def temperature_table():
    return {c: round(c * 9 / 5 + 32, 1) for c in range(-500, 5_000)}


def password_checker():
    candidates = [f"Passw0rd{i}!" if i % 3 else "weak" for i in range(3_000)]
    strong = []
    for p in candidates:
        if len(p) >= 8 and any(c.isdigit() for c in p) and any(c.isupper() for c in p) and any(not c.isalnum() for c in p):
            strong.append(p)
    return strong


def shopping_cart():
    prices = {"apple": 0.5, "bread": 2.25, "milk": 1.1, "cheese": 5.75}
    total = 0.0
    for i in range(30_000):
        item = ("apple", "bread", "milk", "cheese")[i % 4]
        quantity = i % 5 + 1
        total += prices[item] * quantity
        if total > 1_000:
            total *= 0.9
    return round(total, 2)


def inverted_index():
    documents = [f"document {i} about topic {i % 50} and author {i % 20}" for i in range(1_500)]
    index = defaultdict(set)
    for number, text in enumerate(documents):
        for word in text.split():
            index[word].add(number)
    return {word: sorted(numbers) for word, numbers in index.items()}


def ngram_counts():
    text = "it was the best of times it was the worst of times " * 300
    words = text.split()
    return Counter(zip(words, words[1:], words[2:])).most_common(10)


def camel_to_snake():
    names = [f"someLongCamelCaseName{i}" for i in range(2_000)]
    out = []
    for name in names:
        chars = []
        for ch in name:
            if ch.isupper():
                chars.append("_")
                chars.append(ch.lower())
            else:
                chars.append(ch)
        out.append("".join(chars))
    return out


def regex_snake():
    pattern = re.compile(r"(?<!^)(?=[A-Z])")
    return [pattern.sub("_", f"someLongCamelCaseName{i}").lower() for i in range(2_000)]


def morse_code():
    table = {"a": ".-", "b": "-...", "c": "-.-.", "d": "-..", "e": ".", "s": "...", "o": "---", "t": "-", "n": "-."}
    message = "sos send boats at once " * 500
    return " ".join(table.get(ch, "/") for ch in message)


def binary_strings():
    return ["".join(bits) for bits in itertools.product("01", repeat=13)]


def gray_code():
    return [format(i ^ (i >> 1), "012b") for i in range(1 << 12)]


def bit_counts():
    return [bin(i).count("1") for i in range(30_000)]


def reverse_integers():
    total = 0
    for n in range(1, 10_000):
        rev = 0
        m = n
        while m:
            rev = rev * 10 + m % 10
            m //= 10
        total += rev
    return total


def collatz_longest():
    best, best_n = 0, 0
    for n in range(1, 3_000):
        steps, x = 0, n
        while x != 1:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        if steps > best:
            best, best_n = steps, n
    return best_n


def right_triangles():
    found = []
    for a in range(1, 120):
        for b in range(a, 120):
            c = math.isqrt(a * a + b * b)
            if c * c == a * a + b * b:
                found.append((a, b, c))
    return found


def twin_primes():
    def is_prime(n):
        if n < 2:
            return False
        for d in range(2, math.isqrt(n) + 1):
            if n % d == 0:
                return False
        return True

    return [(p, p + 2) for p in range(3, 5_000) if is_prime(p) and is_prime(p + 2)]


def modular_exponents():
    return sum(pow(b, 65_537, 1_000_003) for b in range(1, 5_000))


def fibonacci_words():
    a, b = "a", "ab"
    for _ in range(18):
        a, b = b, b + a
    return len(b)


def catalan_numbers():
    c = [1]
    for n in range(1, 200):
        c.append(sum(c[i] * c[n - 1 - i] for i in range(n)))
    return c[-1]


def partitions_table():
    n = 300
    ways = [1] + [0] * n
    for k in range(1, n + 1):
        for total in range(k, n + 1):
            ways[total] += ways[total - k]
    return ways[n]


def longest_palindrome_dp():
    s = "forgeeksskeegfor" * 10
    n = len(s)
    best = 0
    table = [[False] * n for _ in range(n)]
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            if s[i] == s[j] and (length < 3 or table[i + 1][j - 1]):
                table[i][j] = True
                best = max(best, length)
    return best


def word_break():
    words = {"cat", "cats", "and", "sand", "dog", "s"}
    text = "catsanddog" * 60
    good = [True] + [False] * len(text)
    for i in range(1, len(text) + 1):
        for j in range(max(0, i - 5), i):
            if good[j] and text[j:i] in words:
                good[i] = True
                break
    return good[-1]


def trapped_water():
    heights = [(i * 7919) % 101 for i in range(20_000)]
    left, right = 0, len(heights) - 1
    left_max = right_max = water = 0
    while left < right:
        if heights[left] < heights[right]:
            left_max = max(left_max, heights[left])
            water += left_max - heights[left]
            left += 1
        else:
            right_max = max(right_max, heights[right])
            water += right_max - heights[right]
            right -= 1
    return water


def largest_rectangle():
    heights = [(i * 37) % 50 + 1 for i in range(10_000)] + [0]
    stack, best = [], 0
    for i, h in enumerate(heights):
        while stack and heights[stack[-1]] >= h:
            height = heights[stack.pop()]
            width = i if not stack else i - stack[-1] - 1
            best = max(best, height * width)
        stack.append(i)
    return best


def sliding_window_maximum():
    data = [(i * 7919) % 1_009 for i in range(15_000)]
    window, out = deque(), []
    for i, x in enumerate(data):
        while window and data[window[-1]] <= x:
            window.pop()
        window.append(i)
        if window[0] <= i - 100:
            window.popleft()
        if i >= 99:
            out.append(data[window[0]])
    return out


def meeting_rooms():
    rng = random.Random(8)
    meetings = sorted((s := rng.randrange(10_000), s + rng.randrange(1, 200)) for _ in range(4_000))
    ends, most = [], 0
    for start, end in meetings:
        while ends and ends[0] <= start:
            heapq.heappop(ends)
        heapq.heappush(ends, end)
        most = max(most, len(ends))
    return most


def islands():
    n = 100
    grid = [["1" if (x * 7 + y * 13) % 5 < 3 else "0" for x in range(n)] for y in range(n)]
    count = 0
    for y in range(n):
        for x in range(n):
            if grid[y][x] != "1":
                continue
            count += 1
            queue = deque([(y, x)])
            grid[y][x] = "0"
            while queue:
                cy, cx = queue.popleft()
                for ny, nx in ((cy + 1, cx), (cy - 1, cx), (cy, cx + 1), (cy, cx - 1)):
                    if 0 <= ny < n and 0 <= nx < n and grid[ny][nx] == "1":
                        grid[ny][nx] = "0"
                        queue.append((ny, nx))
    return count


def knight_tour_distances():
    n = 50
    distance = {(0, 0): 0}
    queue = deque([(0, 0)])
    while queue:
        x, y = queue.popleft()
        for dx, dy in ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)):
            nx, ny = x + dx, y + dy
            if 0 <= nx < n and 0 <= ny < n and (nx, ny) not in distance:
                distance[nx, ny] = distance[x, y] + 1
                queue.append((nx, ny))
    return max(distance.values())


def bellman_ford():
    n = 150
    edges = [(u, (u * 7 + k * 11) % n, (u + k) % 13 + 1) for u in range(n) for k in range(5)]
    dist = [math.inf] * n
    dist[0] = 0
    for _ in range(n - 1):
        for u, v, w in edges:
            if dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
    return dist


def sudoku_check():
    board = [[(r * 3 + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)]
    good = 0
    for _ in range(500):
        rows = all(len(set(row)) == 9 for row in board)
        columns = all(len({board[r][c] for r in range(9)}) == 9 for c in range(9))
        boxes = all(
            len({board[r + i][c + j] for i in range(3) for j in range(3)}) == 9 for r in (0, 3, 6) for c in (0, 3, 6)
        )
        good += rows and columns and boxes
    return good


def tic_tac_toe():
    lines = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def play(board, player):
        for a, b, c in lines:
            if board[a] != " " and board[a] == board[b] == board[c]:
                return 1
        if " " not in board:
            return 1
        total = 0
        for i in range(9):
            if board[i] == " ":
                total += play(board[:i] + player + board[i + 1 :], "O" if player == "X" else "X")
        return total

    return play("XOX      ", "O")


def subset_sums():
    numbers = [3, 34, 4, 12, 5, 2, 17, 23, 9, 31, 6, 14]
    sums = {0}
    for n in numbers * 4:
        sums |= {s + n for s in sums}
    return len(sums)


def text_histogram():
    text = "The quick brown fox jumps over the lazy dog. " * 400
    counts = Counter(ch.lower() for ch in text if ch.isalpha())
    return "\n".join(f"{ch} {'#' * (n // 50)} {n}" for ch, n in sorted(counts.items()))


def justify_lines():
    words = ("lorem ipsum dolor sit amet consectetur adipiscing elit " * 120).split()
    lines, line, width = [], [], 0
    for w in words:
        if width + len(w) + len(line) > 60:
            gaps = max(len(line) - 1, 1)
            spaces = 60 - width
            lines.append("".join(x + " " * (spaces // gaps + (i < spaces % gaps)) for i, x in enumerate(line)).rstrip())
            line, width = [], 0
        line.append(w)
        width += len(w)
    return lines


def csv_totals():
    text = "\n".join(f"{i % 12 + 1},{i * 1.25:.2f},store{i % 7}" for i in range(5_000))
    totals = defaultdict(float)
    for month, amount, store in csv.reader(io.StringIO(text)):
        totals[month, store] += float(amount)
    return totals


def query_strings():
    return [urllib.parse.urlencode({"page": i, "q": "some words", "sort": "asc"}) for i in range(1_500)]


def checksums():
    return [hashlib.md5(str(i).encode()).hexdigest() for i in range(10_000)]


def hex_dump():
    data = bytes(i * 7 % 256 for i in range(8_000))
    lines = []
    for offset in range(0, len(data), 16):
        chunk = data[offset : offset + 16]
        lines.append(f"{offset:08x}  {' '.join(f'{b:02x}' for b in chunk)}")
    return "\n".join(lines)


@dataclass
class Employee:
    name: str
    salary: float
    tags: list = field(default_factory=list)


def payroll():
    staff = [Employee(f"e{i}", 1_000 + i % 500) for i in range(5_000)]
    for e in staff:
        if e.salary > 1_250:
            e.salary *= 1.03
        e.tags.append("paid")
    return sum(e.salary for e in staff)


class Matrix:
    def __init__(self, rows):
        self.rows = rows

    def __matmul__(self, other):
        columns = list(zip(*other.rows))
        return Matrix([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])


def matrix_square():
    m = Matrix([[(i * j) % 9 for j in range(45)] for i in range(45)])
    return (m @ m).rows[0][0]


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise IndexError("empty")
        return self.items.pop()

    def __len__(self):
        return len(self.items)


def stack_machine():
    stack = Stack()
    for i in range(10_000):
        stack.push(i)
        if i % 3 == 2:
            stack.push(stack.pop() + stack.pop())
    return len(stack)


class Shape:
    def area(self):
        raise NotImplementedError


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return math.pi * self.r**2


class Square(Shape):
    def __init__(self, a):
        self.a = a

    def area(self):
        return self.a * self.a


def total_area():
    shapes = [Circle(i % 10) if i % 2 else Square(i % 10) for i in range(10_000)]
    return sum(shape.area() for shape in shapes)


def memo_grid_paths():
    @functools.cache
    def paths(r, c):
        if r == 0 or c == 0:
            return 1
        return paths(r - 1, c) + paths(r, c - 1)

    return paths(90, 90)


def flatten_nested():
    def flatten(items):
        for item in items:
            if isinstance(item, list):
                yield from flatten(item)
            else:
                yield item

    nested = [[i, [i + 1, [i + 2, [i + 3]]]] for i in range(1_500)]
    return list(flatten(nested))


def pipeline():
    def numbers():
        for i in range(20_000):
            yield i

    def squares(source):
        for n in source:
            yield n * n

    def evens(source):
        for n in source:
            if n % 2 == 0:
                yield n

    return sum(evens(squares(numbers())))


def chunked_sums():
    data = list(range(30_000))
    return [sum(data[i : i + 64]) for i in range(0, len(data), 64)]


def percentile_ranks():
    scores = sorted((i * 7919) % 10_007 for i in range(8_000))
    return [bisect.bisect_right(scores, x) / len(scores) for x in range(0, 10_000, 5)]


def running_variance():
    mean = m2 = 0.0
    for n in range(1, 40_001):
        x = math.sin(n)
        delta = x - mean
        mean += delta / n
        m2 += delta * (x - mean)
    return m2 / 40_000
