"""Small jobs of everyday programs: reports, parsing, simulations, algorithms."""
import base64
import bisect
import csv
import datetime
import decimal
import difflib
import fractions
import functools
import gzip
import hashlib
import heapq
import html
import io
import itertools
import json
import math
import pickle
import random
import re
import statistics
import struct
import textwrap
import uuid
import zlib
from collections import defaultdict, deque
from dataclasses import dataclass, field


def business_days():
    day = datetime.date(2020, 1, 1)
    end = datetime.date(2024, 12, 31)
    count = 0
    while day <= end:
        if day.weekday() < 5:
            count += 1
        day += datetime.timedelta(days=1)
    return count


def rolling_average():
    values = [math.sin(i / 10) for i in range(20_000)]
    window = deque(maxlen=50)
    out = []
    for v in values:
        window.append(v)
        out.append(sum(window) / len(window))
    return out


def rolling_average_fast():
    values = [math.sin(i / 10) for i in range(20_000)]
    total = sum(values[:50])
    out = [total / 50]
    for i in range(50, len(values)):
        total += values[i] - values[i - 50]
        out.append(total / 50)
    return out


def word_frequencies():
    text = "the quick brown fox jumps over the lazy dog " * 5_000
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


def parse_log_lines():
    pattern = re.compile(r"(\d+\.\d+\.\d+\.\d+) - - \[(.*?)\] \"(\w+) (.*?)\" (\d+) (\d+)")
    line = '127.0.0.1 - - [10/Oct/2000:13:55:36] "GET /index.html" 200 2326'
    hits = defaultdict(int)
    for _ in range(10_000):
        m = pattern.match(line)
        if m:
            hits[m.group(5)] += int(m.group(6))
    return hits


def json_round_trip():
    rows = [{"id": i, "name": f"user{i}", "tags": ["a", "b", "c"], "score": i * 0.5} for i in range(5_000)]
    return json.loads(json.dumps(rows))


def hash_chunks():
    h = hashlib.sha256()
    block = b"x" * 65_536
    for _ in range(200):
        h.update(block)
    return h.hexdigest()


def password_hash():
    return hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 100_000)


def mandelbrot():
    width, height, limit = 120, 80, 60
    rows = []
    for y in range(height):
        row = []
        for x in range(width):
            c = complex(3.5 * x / width - 2.5, 2 * y / height - 1)
            z = 0
            n = 0
            while abs(z) <= 2 and n < limit:
                z = z * z + c
                n += 1
            row.append(n)
        rows.append(row)
    return rows


def game_of_life():
    size = 64
    grid = [[(x * y) % 3 == 0 for x in range(size)] for y in range(size)]
    for _ in range(20):
        new = [[False] * size for _ in range(size)]
        for y in range(size):
            for x in range(size):
                alive = 0
                for dy in (-1, 0, 1):
                    for dx in (-1, 0, 1):
                        if dx or dy:
                            alive += grid[(y + dy) % size][(x + dx) % size]
                new[y][x] = alive == 3 or (grid[y][x] and alive == 2)
        grid = new
    return sum(map(sum, grid))


def knapsack():
    weights = [(i * 7) % 23 + 1 for i in range(60)]
    values = [(i * 13) % 37 + 1 for i in range(60)]
    capacity = 500
    best = [0] * (capacity + 1)
    for w, v in zip(weights, values):
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best[capacity]


def edit_distance():
    a = "kitten sitting on the mitten " * 8
    b = "sitting kitten in the kitchen " * 8
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + (ca != cb)))
        prev = cur
    return prev[-1]


def monte_carlo_pi():
    rng = random.Random(7)
    inside = 0
    for _ in range(200_000):
        x, y = rng.random(), rng.random()
        if x * x + y * y <= 1:
            inside += 1
    return 4 * inside / 200_000


def merge_intervals():
    rng = random.Random(1)
    spans = sorted((a := rng.randrange(100_000), a + rng.randrange(50)) for _ in range(10_000))
    merged = [list(spans[0])]
    for start, end in spans[1:]:
        if start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return len(merged)


def top_k_heap():
    rng = random.Random(3)
    data = [rng.random() for _ in range(50_000)]
    return heapq.nlargest(10, data)


def anagram_groups():
    words = ["".join(random.Random(i).sample("abcdefg", 4)) for i in range(3_000)]
    groups = defaultdict(list)
    for w in words:
        groups["".join(sorted(w))].append(w)
    return groups


def decimal_series():
    decimal.getcontext().prec = 50
    total = decimal.Decimal(0)
    for k in range(1, 2_000):
        total += decimal.Decimal(1) / (k * k)
    return total


def fraction_harmonic():
    total = fractions.Fraction(0)
    for k in range(1, 400):
        total += fractions.Fraction(1, k)
    return total


def csv_report():
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for i in range(10_000):
        writer.writerow([i, f"name {i}", i * 1.5, "x,y"])
    buffer.seek(0)
    return sum(float(row[2]) for row in csv.reader(buffer))


def gzip_text():
    data = ("lorem ipsum dolor sit amet " * 20_000).encode()
    return len(gzip.compress(data))


def base64_image():
    return base64.b64encode(bytes(range(256)) * 4_096)


def permutations_sum():
    best = 0
    for p in itertools.permutations(range(8)):
        best = max(best, sum(i * v for i, v in enumerate(p)))
    return best


def matrix_power():
    def mul(a, b):
        n = len(a)
        return [[sum(a[i][k] * b[k][j] for k in range(n)) for j in range(n)] for i in range(n)]

    m = [[(i + j) % 5 for j in range(20)] for i in range(20)]
    result = [[int(i == j) for j in range(20)] for i in range(20)]
    for _ in range(6):
        result = mul(result, m)
    return result


@dataclass
class Point:
    x: float
    y: float
    tags: list = field(default_factory=list)


def many_dataclasses():
    points = [Point(i, i * 2) for i in range(30_000)]
    return max(points, key=lambda p: p.x + p.y)


def convex_hull():
    rng = random.Random(5)
    pts = sorted((rng.random(), rng.random()) for _ in range(5_000))

    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    lower = []
    for p in pts:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    return lower


def caesar_cipher():
    text = "Hello, World! " * 3_000
    out = []
    for ch in text:
        if ch.isalpha():
            base = ord("A") if ch.isupper() else ord("a")
            out.append(chr((ord(ch) - base + 3) % 26 + base))
        else:
            out.append(ch)
    return "".join(out)


def string_concat_plus():
    s = ""
    for i in range(20_000):
        s += str(i)
    return s


def unique_pairs():
    n = 600
    found = set()
    for i in range(n):
        for j in range(i + 1, n):
            if (i ^ j) % 7 == 0:
                found.add((i, j))
    return len(found)


def memo_partitions():
    @functools.lru_cache(maxsize=None)
    def p(n, k):
        if n == 0:
            return 1
        if n < 0 or k == 0:
            return 0
        return p(n, k - 1) + p(n - k, k)

    return p(120, 120)


def binary_search_many():
    data = list(range(0, 1_000_000, 7))
    return sum(bisect.bisect_left(data, q) for q in range(0, 1_000_000, 50))


def stats_summary():
    data = [(i * 37) % 1009 / 7 for i in range(20_000)]
    return statistics.mean(data), statistics.median(data), statistics.stdev(data)


def diff_files():
    a = [f"line {i}" for i in range(800)]
    b = [f"line {i}" for i in range(800) if i % 10]
    return list(difflib.unified_diff(a, b))


def uuid_batch():
    return [str(uuid.uuid4()) for _ in range(10_000)]


def pickled_copies():
    obj = {i: list(range(20)) for i in range(2_000)}
    return pickle.loads(pickle.dumps(obj))


def wrap_text():
    return textwrap.wrap("the quick brown fox jumps over the lazy dog " * 400, width=72)


def struct_records():
    out = bytearray()
    for i in range(50_000):
        out += struct.pack("<IfH", i, i * 0.5, i % 65_536)
    return bytes(out)


def transpose_big():
    rows = [[i * j for j in range(300)] for i in range(300)]
    return [list(col) for col in zip(*rows)]


def two_sum_slow():
    nums = list(range(1_500))
    for i in range(len(nums)):
        for j in range(i + 1, len(nums)):
            if nums[i] + nums[j] == 2_997:
                return i, j


def primes_trial_division():
    primes = []
    n = 2
    while len(primes) < 1_500:
        if all(n % p for p in primes):
            primes.append(n)
        n += 1
    return primes


def ackermann_small():
    def ack(m, n):
        if m == 0:
            return n + 1
        if n == 0:
            return ack(m - 1, 1)
        return ack(m - 1, ack(m, n - 1))

    return ack(2, 60)


def permute_string():
    def walk(prefix, rest):
        if not rest:
            return [prefix]
        out = []
        for i, ch in enumerate(rest):
            out.extend(walk(prefix + ch, rest[:i] + rest[i + 1 :]))
        return out

    return walk("", "abcdefgh")


def html_escape_many():
    return [html.escape("<a href='x'>link & more</a>") for _ in range(20_000)]


def pascal_rows():
    rows = [[1]]
    for _ in range(200):
        last = rows[-1]
        rows.append([1] + [a + b for a, b in zip(last, last[1:])] + [1])
    return rows


def roman_numerals():
    table = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    out = []
    for n in range(1, 4_000):
        s = ""
        for value, sign in table:
            while n >= value:
                s += sign
                n -= value
        out.append(s)
    return out


def crc_loop():
    crc = 0
    for i in range(5_000):
        crc = zlib.crc32(b"payload" * 20, crc)
    return crc
