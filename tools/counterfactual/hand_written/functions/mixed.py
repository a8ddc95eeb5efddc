"""More algorithms, classes, texts and files."""
import ast
import bisect
import calendar
import heapq
import itertools
import json
import math
import random
import re
from collections import Counter, defaultdict, deque
from datetime import date, timedelta


def heap_sort():
    data = [(i * 7919) % 10_007 for i in range(5_000)]
    heap = []
    for x in data:
        heapq.heappush(heap, x)
    return [heapq.heappop(heap) for _ in range(len(heap))]


def selection_sort():
    data = [(i * 7919) % 1_000 for i in range(400)]
    for i in range(len(data)):
        low = i
        for j in range(i + 1, len(data)):
            if data[j] < data[low]:
                low = j
        data[i], data[low] = data[low], data[i]
    return data


def counting_sort():
    data = [(i * 7919) % 256 for i in range(50_000)]
    counts = [0] * 256
    for x in data:
        counts[x] += 1
    out = []
    for value, count in enumerate(counts):
        out.extend([value] * count)
    return out


def lis_bisect():
    data = [(i * 7919) % 10_007 for i in range(10_000)]
    tails = []
    for x in data:
        k = bisect.bisect_left(tails, x)
        if k == len(tails):
            tails.append(x)
        else:
            tails[k] = x
    return len(tails)


def levenshtein_matrix():
    a, b = "intention" * 12, "execution" * 12
    d = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        d[i][0] = i
    for j in range(len(b) + 1):
        d[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
    return d[-1][-1]


def n_queens():
    def solve(row, cols, d1, d2):
        if row == 7:
            return 1
        total = 0
        for c in range(7):
            if c in cols or row + c in d1 or row - c in d2:
                continue
            total += solve(row + 1, cols | {c}, d1 | {row + c}, d2 | {row - c})
        return total

    return solve(0, set(), set(), set())


def hanoi():
    moves = []

    def move(n, a, b, c):
        if n == 0:
            return
        move(n - 1, a, c, b)
        moves.append((a, c))
        move(n - 1, b, a, c)

    move(12, "A", "B", "C")
    return len(moves)


def power_set():
    items = list(range(13))
    result = [[]]
    for x in items:
        result += [subset + [x] for subset in result]
    return result


def flood_fill():
    n = 120
    grid = [[0 if (x * y) % 7 else 1 for x in range(n)] for y in range(n)]
    stack = [(1, 1)]
    seen = {(1, 1)}
    while stack:
        x, y = stack.pop()
        for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if 0 <= nx < n and 0 <= ny < n and grid[ny][nx] == 0 and (nx, ny) not in seen:
                seen.add((nx, ny))
                stack.append((nx, ny))
    return len(seen)


def topological_order():
    graph = {i: [j for j in (i * 2, i * 2 + 1, i + 3) if j < 3_000] for i in range(1, 3_000)}
    indegree = Counter(j for targets in graph.values() for j in targets)
    ready = deque(i for i in graph if indegree[i] == 0)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for target in graph[node]:
            indegree[target] -= 1
            if indegree[target] == 0:
                ready.append(target)
    return len(order)


def pagerank():
    n = 200
    links = {i: [(i * 7 + k) % n for k in range(1, 6)] for i in range(n)}
    rank = {i: 1 / n for i in range(n)}
    for _ in range(30):
        new = {i: 0.15 / n for i in range(n)}
        for i, targets in links.items():
            share = 0.85 * rank[i] / len(targets)
            for t in targets:
                new[t] += share
        rank = new
    return max(rank.values())


def kmeans():
    rng = random.Random(2)
    points = [(rng.random(), rng.random()) for _ in range(1_000)]
    centers = points[:5]
    for _ in range(8):
        groups = [[] for _ in centers]
        for p in points:
            best = min(range(5), key=lambda k: (p[0] - centers[k][0]) ** 2 + (p[1] - centers[k][1]) ** 2)
            groups[best].append(p)
        centers = [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups if g]
    return centers


def gradient_descent():
    xs = [i / 100 for i in range(100)]
    ys = [3 * x + 1 for x in xs]
    w = b = 0.0
    for _ in range(300):
        gw = gb = 0.0
        for x, y in zip(xs, ys):
            err = w * x + b - y
            gw += err * x
            gb += err
        w -= 0.01 * gw
        b -= 0.01 * gb
    return w, b


def newton_sqrt():
    total = 0.0
    for n in range(1, 5_000):
        x = n
        while abs(x * x - n) > 1e-9:
            x = (x + n / x) / 2
        total += x
    return total


def integrate_simpson():
    n = 20_000
    h = math.pi / n
    total = math.sin(0) + math.sin(math.pi)
    for i in range(1, n):
        total += (4 if i % 2 else 2) * math.sin(i * h)
    return total * h / 3


def gcd_steps():
    steps = 0
    for a in range(1, 150):
        for b in range(1, 150):
            x, y = a, b
            while y:
                x, y = y, x % y
                steps += 1
    return steps


def digit_sums():
    return sum(sum(map(int, str(n))) for n in range(20_000))


def happy_numbers():
    found = []
    for n in range(1, 3_000):
        seen = set()
        x = n
        while x != 1 and x not in seen:
            seen.add(x)
            x = sum(int(d) ** 2 for d in str(x))
        if x == 1:
            found.append(n)
    return found


def prime_factors():
    out = {}
    for n in range(2, 3_000):
        factors, d, m = [], 2, n
        while d * d <= m:
            while m % d == 0:
                factors.append(d)
                m //= d
            d += 1
        if m > 1:
            factors.append(m)
        out[n] = factors
    return out


def look_and_say():
    s = "1"
    for _ in range(25):
        s = "".join(str(len(list(g))) + k for k, g in itertools.groupby(s))
    return len(s)


def vigenere():
    key, text = "LEMON", "ATTACKATDAWN" * 800
    return "".join(chr((ord(c) + ord(k) - 130) % 26 + 65) for c, k in zip(text, itertools.cycle(key)))


def huffman():
    text = "this is an example of a huffman tree " * 200
    heap = [[count, [ch, ""]] for ch, count in Counter(text).items()]
    heapq.heapify(heap)
    while len(heap) > 1:
        low = heapq.heappop(heap)
        high = heapq.heappop(heap)
        for pair in low[1:]:
            pair[1] = "0" + pair[1]
        for pair in high[1:]:
            pair[1] = "1" + pair[1]
        heapq.heappush(heap, [low[0] + high[0], *low[1:], *high[1:]])
    codes = dict(heap[0][1:])
    return len("".join(codes[ch] for ch in text))


def balanced_brackets():
    text = "([]{})" * 5_000
    pairs = {")": "(", "]": "[", "}": "{"}
    stack = []
    for ch in text:
        if ch in pairs:
            if not stack or stack.pop() != pairs[ch]:
                return False
        else:
            stack.append(ch)
    return not stack


def daily_temperatures():
    temps = [(i * 7919) % 97 for i in range(20_000)]
    out = [0] * len(temps)
    stack = []
    for i, t in enumerate(temps):
        while stack and temps[stack[-1]] < t:
            j = stack.pop()
            out[j] = i - j
        stack.append(i)
    return out


def longest_unique_substring():
    s = "abcdefghijabcdefghij" * 1_000
    seen = {}
    left = best = 0
    for right, ch in enumerate(s):
        if ch in seen and seen[ch] >= left:
            left = seen[ch] + 1
        seen[ch] = right
        best = max(best, right - left + 1)
    return best


def three_sum():
    nums = sorted((i * 37) % 401 - 200 for i in range(250))
    found = []
    for i in range(len(nums) - 2):
        left, right = i + 1, len(nums) - 1
        while left < right:
            total = nums[i] + nums[left] + nums[right]
            if total < 0:
                left += 1
            elif total > 0:
                right -= 1
            else:
                found.append((nums[i], nums[left], nums[right]))
                left += 1
                right -= 1
    return len(found)


def matrix_chain():
    dims = [(i * 7) % 40 + 5 for i in range(45)]
    n = len(dims) - 1
    cost = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j] = min(cost[i][k] + cost[k + 1][j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j))
    return cost[0][n - 1]


class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("insufficient funds")
        self.balance -= amount
        self.history.append(("withdraw", amount))


def bank_day():
    accounts = [Account(f"user{i}", 100) for i in range(100)]
    failed = 0
    for i in range(20_000):
        account = accounts[i % 100]
        if i % 3:
            account.deposit(i % 50)
        else:
            try:
                account.withdraw(i % 200)
            except ValueError:
                failed += 1
    return failed


class LinkedList:
    class Item:
        def __init__(self, value):
            self.value = value
            self.next = None

    def __init__(self):
        self.head = None
        self.tail = None

    def append(self, value):
        item = self.Item(value)
        if self.tail is None:
            self.head = self.tail = item
        else:
            self.tail.next = item
            self.tail = item

    def __iter__(self):
        node = self.head
        while node:
            yield node.value
            node = node.next


def linked_list_sum():
    items = LinkedList()
    for i in range(10_000):
        items.append(i)
    return sum(items)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)


def vector_sum():
    total = Vector(0, 0)
    for i in range(20_000):
        total = total + Vector(i, i * 2)
    return total.x


def memoized_collatz():
    cache = {1: 1}
    best = 0
    for n in range(1, 20_000):
        path = []
        x = n
        while x not in cache:
            path.append(x)
            x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps = cache[x]
        for y in reversed(path):
            steps += 1
            cache[y] = steps
        best = max(best, cache[n])
    return best


def group_by_month():
    start = date(2020, 1, 1)
    totals = defaultdict(int)
    for i in range(2_000):
        day = start + timedelta(days=i)
        totals[day.year, day.month] += i
    return totals


def calendar_text():
    return [calendar.month(2024, m) for m in range(1, 13)]


def nested_json():
    tree = {"children": [{"name": f"n{i}", "children": [{"id": j} for j in range(10)]} for i in range(300)]}
    return len(json.dumps(tree, indent=2))


def ast_walk():
    source = "def f(x):\n    return [y * 2 for y in x if y > 3]\n" * 200
    return sum(1 for _ in ast.walk(ast.parse(source)))


def regex_emails():
    text = "contact alice@example.com or bob.smith@mail.org today; " * 500
    return re.findall(r"[\w.]+@[\w.]+\.\w+", text)


def format_table():
    rows = [(i, f"name{i}", i * 1.5) for i in range(3_000)]
    return "\n".join(f"{a:>6} | {b:<12} | {c:10.2f}" for a, b, c in rows)


def byte_histogram():
    data = bytes(range(256)) * 400
    hist = [0] * 256
    for b in data:
        hist[b] += 1
    return hist


def xor_cipher():
    data = b"attack at dawn " * 4_000
    key = b"secret"
    return bytes(b ^ key[i % len(key)] for i, b in enumerate(data))


def word_ladder():
    words = {"".join(p) for p in itertools.product("abcd", repeat=4)}
    queue = deque([("aaaa", 0)])
    seen = {"aaaa"}
    while queue:
        word, steps = queue.popleft()
        if word == "dddd":
            return steps
        for i in range(4):
            for ch in "abcd":
                nxt = word[:i] + ch + word[i + 1 :]
                if nxt in words and nxt not in seen:
                    seen.add(nxt)
                    queue.append((nxt, steps + 1))


def chained_filters():
    return list(map(str, filter(lambda n: n % 3 == 0, map(lambda n: n * n, range(20_000)))))


def sort_by_several_keys():
    rows = [{"a": i % 7, "b": -i, "c": str(i)} for i in range(5_000)]
    return sorted(rows, key=lambda r: (r["a"], r["b"]))


def string_reversals():
    return [s[::-1] for s in (f"item-{i}" for i in range(20_000))]


def set_algebra():
    a = set(range(0, 100_000, 2))
    b = set(range(0, 100_000, 3))
    return len(a & b), len(a | b), len(a - b)


def prefix_sums():
    data = list(range(50_000))
    sums = [0]
    for x in data:
        sums.append(sums[-1] + x)
    return [sums[i + 100] - sums[i] for i in range(len(data) - 100)]
