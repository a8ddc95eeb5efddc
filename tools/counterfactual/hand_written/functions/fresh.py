"""Functions that no correction of the analysis was made for: more algorithms, texts and small classes."""
import collections
import datetime
import functools
import hashlib
import heapq
import itertools
import json
import math
import operator
import random
import re
import statistics
import string
from collections import Counter, defaultdict, deque
from dataclasses import dataclass


def luhn_numbers():
    valid = 0
    for n in range(10_000, 14_000):
        total = 0
        for i, d in enumerate(reversed(str(n))):
            k = int(d)
            if i % 2:
                k *= 2
                if k > 9:
                    k -= 9
            total += k
        valid += total % 10 == 0
    return valid


def isbn_checks():
    good = []
    for i in range(3_000):
        digits = f"978{i:09d}"
        total = sum(int(d) * (1 if k % 2 == 0 else 3) for k, d in enumerate(digits))
        good.append(digits + str((10 - total % 10) % 10))
    return good


def word_lengths():
    text = "a quick brown fox jumps over the lazy dog near the river bank " * 800
    lengths = defaultdict(list)
    for word in text.split():
        lengths[len(word)].append(word)
    return {n: len(words) for n, words in lengths.items()}


def title_case():
    lines = ["the lord of the rings and the return of the king"] * 1_500
    small = {"the", "of", "and"}
    out = []
    for line in lines:
        words = line.split()
        out.append(" ".join(w if i and w in small else w.capitalize() for i, w in enumerate(words)))
    return out


def rot_and_reverse():
    text = string.ascii_letters * 400
    return "".join(reversed([chr(ord(c) ^ 1) for c in text]))


def common_prefix():
    words = [f"prefix_common_{i}" for i in range(4_000)]
    prefix = words[0]
    for w in words[1:]:
        while not w.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


def is_subsequence():
    s, t = "ace" * 200, "abcde" * 400
    i = 0
    for ch in t:
        if i < len(s) and s[i] == ch:
            i += 1
    return i == len(s)


def compress_runs():
    data = [i // 7 % 10 for i in range(40_000)]
    out = []
    i = 0
    while i < len(data):
        j = i
        while j < len(data) and data[j] == data[i]:
            j += 1
        out.append((data[i], j - i))
        i = j
    return out


def rotate_matrix():
    n = 150
    m = [[i * n + j for j in range(n)] for i in range(n)]
    for layer in range(n // 2):
        last = n - 1 - layer
        for i in range(layer, last):
            k = i - layer
            top = m[layer][i]
            m[layer][i] = m[last - k][layer]
            m[last - k][layer] = m[last][last - k]
            m[last][last - k] = m[i][last]
            m[i][last] = top
    return m[0][0]


def diagonal_sums():
    n = 200
    sums = defaultdict(int)
    for i in range(n):
        for j in range(n):
            sums[i - j] += i * j
    return max(sums.values())


def saddle_points():
    m = [[(i * 31 + j * 17) % 97 for j in range(80)] for i in range(80)]
    columns = list(zip(*m))
    return [(i, j) for i, row in enumerate(m) for j, x in enumerate(row) if x == max(row) and x == min(columns[j])]


def kadane():
    data = [(i * 7919) % 201 - 100 for i in range(40_000)]
    best = current = data[0]
    for x in data[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best


def majority_vote():
    data = [(i * i) % 3 for i in range(50_000)]
    candidate, count = None, 0
    for x in data:
        if count == 0:
            candidate = x
        count += 1 if x == candidate else -1
    return candidate


def two_sum_hash():
    nums = [(i * 7919) % 100_003 for i in range(20_000)]
    seen = {}
    for i, x in enumerate(nums):
        if 200_005 - x in seen:
            return seen[200_005 - x], i
        seen[x] = i


def merge_k_lists():
    lists = [list(range(k, 3_000, 10)) for k in range(10)]
    return list(heapq.merge(*lists))


def kth_largest():
    rng = random.Random(6)
    heap = []
    for _ in range(30_000):
        x = rng.random()
        if len(heap) < 100:
            heapq.heappush(heap, x)
        elif x > heap[0]:
            heapq.heapreplace(heap, x)
    return heap[0]


def running_median():
    low, high = [], []
    for i in range(8_000):
        x = (i * 7919) % 10_007
        heapq.heappush(low, -heapq.heappushpop(high, x))
        if len(low) > len(high):
            heapq.heappush(high, -heapq.heappop(low))
    return high[0]


def binary_search_by_hand():
    data = list(range(0, 200_000, 3))
    found = 0
    for target in range(0, 60_000, 11):
        low, high = 0, len(data) - 1
        while low <= high:
            mid = (low + high) // 2
            if data[mid] == target:
                found += 1
                break
            if data[mid] < target:
                low = mid + 1
            else:
                high = mid - 1
    return found


def square_root_digits():
    digits, a, b = [], 5 * 2, 5
    for _ in range(2_000):
        if a >= b:
            a -= b
            b += 10
            digits.append(1)
        else:
            a *= 100
            b = b // 10 * 100 + 5
        if a.bit_length() > 400:
            a >>= 300
            b >>= 300
    return len(digits)


def perfect_squares():
    n = 3_000
    best = [0] + [n] * n
    for i in range(1, n + 1):
        k = 1
        while k * k <= i:
            best[i] = min(best[i], best[i - k * k] + 1)
            k += 1
    return best[n]


def house_robber():
    money = [(i * 37) % 400 for i in range(30_000)]
    rob = skip = 0
    for m in money:
        rob, skip = skip + m, max(rob, skip)
    return max(rob, skip)


def unique_paths_obstacles():
    n = 150
    grid = [[1 if (i * 7 + j * 3) % 11 == 0 and i + j else 0 for j in range(n)] for i in range(n)]
    ways = [[0] * n for _ in range(n)]
    ways[0][0] = 1
    for i in range(n):
        for j in range(n):
            if grid[i][j]:
                ways[i][j] = 0
                continue
            if i:
                ways[i][j] += ways[i - 1][j]
            if j:
                ways[i][j] += ways[i][j - 1]
    return ways[-1][-1]


def egg_drop():
    @functools.lru_cache(None)
    def tries(eggs, floors):
        if eggs == 1 or floors <= 1:
            return floors
        return 1 + min(max(tries(eggs - 1, f - 1), tries(eggs, floors - f)) for f in range(1, floors + 1))

    return tries(2, 60)


def combination_sums():
    found = []

    def search(start, rest, path):
        if rest == 0:
            found.append(path[:])
            return
        for c in range(start, 9):
            if c > rest:
                break
            path.append(c)
            search(c, rest - c, path)
            path.pop()

    search(2, 24, [])
    return len(found)


def parentheses():
    out = []

    def build(text, opened, closed):
        if len(text) == 16:
            out.append(text)
            return
        if opened < 8:
            build(text + "(", opened + 1, closed)
        if closed < opened:
            build(text + ")", opened, closed + 1)

    build("", 0, 0)
    return len(out)


def permutations_by_swaps():
    items = list(range(7))
    count = 0

    def permute(k):
        nonlocal count
        if k == len(items):
            count += 1
            return
        for i in range(k, len(items)):
            items[k], items[i] = items[i], items[k]
            permute(k + 1)
            items[k], items[i] = items[i], items[k]

    permute(0)
    return count


def tree_depths():
    tree = {i: [j for j in (2 * i + 1, 2 * i + 2) if j < 4_000] for i in range(4_000)}

    def depth(node):
        return 1 + max((depth(child) for child in tree[node]), default=0)

    return depth(0)


def components():
    edges = [(i, (i * 17 + 5) % 5_000) for i in range(5_000)]
    parent = list(range(5_000))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for a, b in edges:
        parent[find(a)] = find(b)
    return len({find(x) for x in range(5_000)})


def bipartite_check():
    graph = {i: [(i + 1) % 2_000, (i - 1) % 2_000] for i in range(2_000)}
    color = {}
    for start in graph:
        if start in color:
            continue
        color[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in graph[node]:
                if other not in color:
                    color[other] = 1 - color[node]
                    queue.append(other)
                elif color[other] == color[node]:
                    return False
    return True


def all_pairs_bfs():
    graph = {i: [(i * 3 + k) % 120 for k in range(1, 4)] for i in range(120)}
    total = 0
    for start in graph:
        seen = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in graph[node]:
                if other not in seen:
                    seen[other] = seen[node] + 1
                    queue.append(other)
        total += sum(seen.values())
    return total


@dataclass(order=True)
class Task:
    priority: int
    name: str = ""


def task_queue():
    heap = []
    for i in range(2_000):
        heapq.heappush(heap, Task((i * 7919) % 1_000, f"t{i}"))
    return [heapq.heappop(heap).name for _ in range(len(heap))]


class Counterpart:
    def __init__(self):
        self.values = {}

    def add(self, key, amount=1):
        self.values[key] = self.values.get(key, 0) + amount

    def top(self, n):
        return sorted(self.values.items(), key=lambda kv: -kv[1])[:n]


def tally():
    counter = Counterpart()
    for i in range(20_000):
        counter.add(i * i % 101)
    return counter.top(5)


class Fraction2:
    def __init__(self, a, b):
        g = math.gcd(a, b)
        self.a, self.b = a // g, b // g

    def __mul__(self, other):
        return Fraction2(self.a * other.a, self.b * other.b)

    def __eq__(self, other):
        return self.a == other.a and self.b == other.b


def telescoping_product():
    x = Fraction2(1, 1)
    for k in range(1, 5_000):
        x = x * Fraction2(k, k + 1)
    return x.b


def event_log():
    start = datetime.datetime(2024, 1, 1)
    events = [start + datetime.timedelta(minutes=i * 37 % 10_000) for i in range(3_000)]
    by_hour = Counter(e.hour for e in events)
    return by_hour.most_common(3)


def moving_range():
    data = [math.sin(i) for i in range(3_000)]
    return [max(data[i : i + 20]) - min(data[i : i + 20]) for i in range(len(data) - 19)]


def standardize():
    data = [(i * 37) % 1_009 for i in range(5_000)]
    mean = sum(data) / len(data)
    sd = math.sqrt(sum((x - mean) ** 2 for x in data) / len(data))
    return [(x - mean) / sd for x in data]


def cumulative_products():
    return list(itertools.accumulate(range(1, 300), operator.mul))


def dedupe_keep_order():
    data = [(i * 7919) % 5_000 for i in range(30_000)]
    return list(dict.fromkeys(data))


def nested_defaults():
    tree = defaultdict(lambda: defaultdict(list))
    for i in range(10_000):
        tree[i % 10][i % 7].append(i)
    return sum(len(v) for inner in tree.values() for v in inner.values())


def config_merge():
    base = {f"k{i}": i for i in range(500)}
    result = {}
    for i in range(50):
        result = {**base, **result, f"extra{i}": i}
    return len(result)
