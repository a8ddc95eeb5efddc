"""Sorting, graphs, data structures, documents and small simulations as textbooks and tutorials have them."""
import configparser
import copy
import datetime
import enum
import heapq
import io
import ipaddress
import itertools
import logging
import math
import operator
import random
import re
import sqlite3
import string
import threading
import urllib.parse
import xml.etree.ElementTree as ET
import zipfile
from collections import OrderedDict, deque, namedtuple
from itertools import groupby, islice


def bubble_sort():
    data = [(i * 7919) % 1000 for i in range(400)]
    n = len(data)
    for i in range(n):
        for j in range(n - i - 1):
            if data[j] > data[j + 1]:
                data[j], data[j + 1] = data[j + 1], data[j]
    return data


def quick_sort():
    def sort(items):
        if len(items) <= 1:
            return items
        pivot = items[len(items) // 2]
        left = [x for x in items if x < pivot]
        middle = [x for x in items if x == pivot]
        right = [x for x in items if x > pivot]
        return sort(left) + middle + sort(right)

    rng = random.Random(42)
    return sort([rng.randint(0, 10_000) for _ in range(5_000)])


def merge_sort():
    def merge(a, b):
        out = []
        i = j = 0
        while i < len(a) and j < len(b):
            if a[i] <= b[j]:
                out.append(a[i])
                i += 1
            else:
                out.append(b[j])
                j += 1
        out.extend(a[i:])
        out.extend(b[j:])
        return out

    def sort(items):
        if len(items) < 2:
            return items
        mid = len(items) // 2
        return merge(sort(items[:mid]), sort(items[mid:]))

    return sort([(i * 7919) % 10_007 for i in range(4_096)])


def insertion_sort():
    data = [(i * 7919) % 1000 for i in range(500)]
    for i in range(1, len(data)):
        key = data[i]
        j = i - 1
        while j >= 0 and data[j] > key:
            data[j + 1] = data[j]
            j -= 1
        data[j + 1] = key
    return data


def sieve():
    limit = 200_000
    flags = [True] * (limit + 1)
    flags[0] = flags[1] = False
    for i in range(2, int(limit**0.5) + 1):
        if flags[i]:
            for j in range(i * i, limit + 1, i):
                flags[j] = False
    return [i for i, f in enumerate(flags) if f]


def perfect_numbers():
    found = []
    for n in range(2, 2_000):
        if sum(d for d in range(1, n) if n % d == 0) == n:
            found.append(n)
    return found


def longest_increasing():
    data = [(i * 7919) % 1000 for i in range(600)]
    best = [1] * len(data)
    for i in range(len(data)):
        for j in range(i):
            if data[j] < data[i] and best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return max(best)


def coin_change():
    coins = [1, 5, 10, 25, 50]
    amount = 5_000
    ways = [1] + [0] * amount
    for coin in coins:
        for a in range(coin, amount + 1):
            ways[a] += ways[a - coin]
    return ways[amount]


def floyd_warshall():
    n = 60
    inf = float("inf")
    dist = [[0 if i == j else ((i * j) % 17 + 1 if (i + j) % 3 == 0 else inf) for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if dist[i][k] + dist[k][j] < dist[i][j]:
                    dist[i][j] = dist[i][k] + dist[k][j]
    return dist


def dijkstra_random():
    rng = random.Random(9)
    graph = {i: [(rng.randrange(2_000), rng.random()) for _ in range(5)] for i in range(2_000)}
    dist = {0: 0.0}
    heap = [(0.0, 0)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist.get(u, math.inf):
            continue
        for v, w in graph[u]:
            nd = d + w
            if nd < dist.get(v, math.inf):
                dist[v] = nd
                heapq.heappush(heap, (nd, v))
    return len(dist)


class UnionFind:
    def __init__(self, n):
        self.parent = list(range(n))
        self.rank = [0] * n

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a, b):
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return False
        if self.rank[ra] < self.rank[rb]:
            ra, rb = rb, ra
        self.parent[rb] = ra
        if self.rank[ra] == self.rank[rb]:
            self.rank[ra] += 1
        return True


def kruskal():
    rng = random.Random(4)
    edges = sorted((rng.random(), rng.randrange(1_000), rng.randrange(1_000)) for _ in range(6_000))
    uf = UnionFind(1_000)
    return sum(w for w, a, b in edges if uf.union(a, b))


class Trie:
    def __init__(self):
        self.root = {}

    def insert(self, word):
        node = self.root
        for ch in word:
            node = node.setdefault(ch, {})
        node["$"] = True

    def search(self, word):
        node = self.root
        for ch in word:
            if ch not in node:
                return False
            node = node[ch]
        return "$" in node


def trie_words():
    trie = Trie()
    words = ["".join(p) for p in itertools.permutations("abcdef", 4)]
    for w in words:
        trie.insert(w)
    return sum(trie.search(w) for w in words)


class Node:
    def __init__(self, value):
        self.value = value
        self.left = None
        self.right = None


def binary_tree():
    root = Node(500)
    for i in range(1, 3_000):
        value = (i * 7919) % 10_007
        node = root
        while True:
            if value < node.value:
                if node.left is None:
                    node.left = Node(value)
                    break
                node = node.left
            else:
                if node.right is None:
                    node.right = Node(value)
                    break
                node = node.right

    def depth(node):
        if node is None:
            return 0
        return 1 + max(depth(node.left), depth(node.right))

    return depth(root)


class LRU:
    def __init__(self, capacity):
        self.capacity = capacity
        self.data = OrderedDict()

    def get(self, key):
        if key not in self.data:
            return None
        self.data.move_to_end(key)
        return self.data[key]

    def put(self, key, value):
        self.data[key] = value
        self.data.move_to_end(key)
        if len(self.data) > self.capacity:
            self.data.popitem(last=False)


def lru_traffic():
    cache = LRU(100)
    hits = 0
    for i in range(20_000):
        key = (i * i) % 257
        if cache.get(key) is not None:
            hits += 1
        else:
            cache.put(key, i)
    return hits


def random_walk():
    rng = random.Random(11)
    x = y = 0
    seen = {(0, 0)}
    for _ in range(50_000):
        dx, dy = rng.choice([(1, 0), (-1, 0), (0, 1), (0, -1)])
        x += dx
        y += dy
        seen.add((x, y))
    return len(seen)


def run_length():
    text = "aaabbbccccd" * 3_000
    return [(ch, len(list(group))) for ch, group in groupby(text)]


def tokenizer():
    source = "x = (3 + 42) * foo - bar / 7 ; " * 500
    tokens = []
    i = 0
    while i < len(source):
        ch = source[i]
        if ch.isspace():
            i += 1
        elif ch.isdigit():
            j = i
            while j < len(source) and source[j].isdigit():
                j += 1
            tokens.append(("num", source[i:j]))
            i = j
        elif ch.isalpha():
            j = i
            while j < len(source) and source[j].isalnum():
                j += 1
            tokens.append(("name", source[i:j]))
            i = j
        else:
            tokens.append(("op", ch))
            i += 1
    return tokens


def palindromic_substrings():
    s = "abacabadabacaba" * 12
    count = 0
    for center in range(2 * len(s) - 1):
        left = center // 2
        right = left + center % 2
        while left >= 0 and right < len(s) and s[left] == s[right]:
            count += 1
            left -= 1
            right += 1
    return count


def rpn_eval():
    tokens = "3 4 + 2 * 7 /".split() * 1
    total = 0.0
    for _ in range(5_000):
        stack = []
        for tok in tokens:
            if tok in "+-*/":
                b, a = stack.pop(), stack.pop()
                stack.append({"+": a + b, "-": a - b, "*": a * b, "/": a / b}[tok])
            else:
                stack.append(float(tok))
        total += stack[0]
    return total


def sqlite_inserts():
    db = sqlite3.connect(":memory:")
    db.execute("create table t (id integer primary key, name text, value real)")
    db.executemany("insert into t (name, value) values (?, ?)", [(f"n{i}", i * 0.5) for i in range(20_000)])
    return db.execute("select sum(value) from t where id % 2 = 0").fetchone()[0]


def xml_document():
    root = ET.Element("root")
    for i in range(2_000):
        item = ET.SubElement(root, "item", id=str(i))
        ET.SubElement(item, "name").text = f"name {i}"
    text = ET.tostring(root)
    return len(ET.fromstring(text).findall("item"))


def zip_archive():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(50):
            z.writestr(f"file{i}.txt", "hello world " * 1_000)
    return len(buffer.getvalue())


def lock_counter():
    lock = threading.Lock()
    count = 0
    for _ in range(100_000):
        with lock:
            count += 1
    return count


def parse_dates():
    return [datetime.datetime.strptime(f"2024-{m:02d}-{d:02d}", "%Y-%m-%d") for m in range(1, 13) for d in range(1, 29)]


def url_batch():
    out = []
    for i in range(2_000):
        u = urllib.parse.urlparse(f"https://example.com:8080/path/{i}?a=1&b={i}#frag")
        out.append((u.netloc, urllib.parse.parse_qs(u.query)))
    return out


def networks():
    net = ipaddress.ip_network("10.0.0.0/20")
    return sum(1 for host in net.hosts() if int(host) % 7 == 0)


def regex_clean():
    text = "Hello,   world!! This is -- a test...  " * 1_000
    text = re.sub(r"[^\w\s]", "", text)
    return re.sub(r"\s+", " ", text).strip().lower()


def count_vowels():
    text = "the quick brown fox jumps over the lazy dog" * 2_000
    return sum(1 for ch in text if ch in "aeiou")


def translate_text():
    table = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[13:] + string.ascii_lowercase[:13])
    return ("hello world " * 20_000).translate(table)


def deep_copies():
    data = {"users": [{"name": f"u{i}", "roles": ["a", "b"]} for i in range(500)]}
    return copy.deepcopy(data)


Item = namedtuple("Item", "name price qty")


def inventory():
    items = [Item(f"item{i}", i * 1.25, i % 7) for i in range(20_000)]
    total = sum(item.price * item.qty for item in items)
    cheapest = sorted(items, key=operator.attrgetter("price"))[:10]
    return total, cheapest


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


def enum_lookups():
    total = 0
    for i in range(20_000):
        total += Color(i % 3 + 1).value
    return total


def primes_generator():
    def gen():
        n = 2
        while True:
            if all(n % d for d in range(2, int(n**0.5) + 1)):
                yield n
            n += 1

    return list(islice(gen(), 1_000))


def matrix_determinant():
    def det(m):
        if len(m) == 1:
            return m[0][0]
        total = 0
        for c in range(len(m)):
            minor = [row[:c] + row[c + 1 :] for row in m[1:]]
            total += (-1) ** c * m[0][c] * det(minor)
        return total

    return det([[(i * j + i) % 7 for j in range(7)] for i in range(7)])


def subsets_sum():
    nums = [3, 34, 4, 12, 5, 2, 7, 8, 9, 10, 15, 16, 23]
    hits = 0
    for mask in range(1 << len(nums)):
        total = 0
        for i in range(len(nums)):
            if mask >> i & 1:
                total += nums[i]
        if total == 50:
            hits += 1
    return hits


def spiral():
    n = 200
    grid = [[0] * n for _ in range(n)]
    x, y, dx, dy = 0, 0, 1, 0
    for i in range(n * n):
        grid[y][x] = i
        nx, ny = x + dx, y + dy
        if not (0 <= nx < n and 0 <= ny < n and grid[ny][nx] == 0):
            dx, dy = -dy, dx
            nx, ny = x + dx, y + dy
        x, y = nx, ny
    return grid


def digits_of_e():
    n = 1_000
    a = [1] * (n + 2)
    out = []
    for _ in range(n):
        carry = 0
        for i in range(n + 1, 0, -1):
            t = a[i] * 10 + carry
            a[i] = t % (i + 1)
            carry = t // (i + 1)
        out.append(carry)
    return out[:10]


def log_lines():
    logger = logging.getLogger("blind2")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    logger.setLevel(logging.INFO)
    for i in range(2_000):
        logger.info("processed %d of %d", i, 2_000)


def config_parse():
    text = "\n".join(f"[section{i}]\nkey = value{i}\nother = {i}" for i in range(300))
    parser = configparser.ConfigParser()
    parser.read_string(text)
    return len(parser.sections())


def josephus():
    people = list(range(3_000))
    i = 0
    while len(people) > 1:
        i = (i + 2) % len(people)
        people.pop(i)
    return people[0]


def hot_potato():
    q = deque(range(500))
    while len(q) > 1:
        q.rotate(-7)
        q.popleft()
    return q[0]


def moving_median():
    data = [(i * 7919) % 1000 for i in range(2_000)]
    return [sorted(data[i : i + 25])[12] for i in range(len(data) - 24)]


def gcd_table():
    return [[math.gcd(i, j) for j in range(1, 200)] for i in range(1, 200)]


def armstrong():
    out = []
    for n in range(20_000):
        digits = [int(d) for d in str(n)]
        if sum(d ** len(digits) for d in digits) == n:
            out.append(n)
    return out
