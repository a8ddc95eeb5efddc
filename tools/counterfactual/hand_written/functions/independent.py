"""Functions of an author who did not know the analysis."""

from __future__ import annotations

import bisect
import csv
import functools
import hashlib
import heapq
import io
import itertools
import json
import math
import operator
import random
import re
import string
import textwrap
import zlib
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from enum import Enum
from fractions import Fraction


VAT_RATES = {"standard": Decimal("0.21"), "reduced": Decimal("0.09"), "zero": Decimal("0")}


@dataclass
class _Line:
    sku: str
    qty: int
    price: Decimal
    vat: str = "standard"

    @property
    def net(self) -> Decimal:
        return self.price * self.qty

    @property
    def tax(self) -> Decimal:
        return (self.net * VAT_RATES[self.vat]).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


@dataclass
class _Invoice:
    number: int
    customer: str
    lines: list[_Line] = field(default_factory=list)

    def total(self) -> Decimal:
        return sum((l.net + l.tax for l in self.lines), Decimal(0))


def _make_invoice(rng: random.Random, number: int, n_lines: int) -> _Invoice:
    inv = _Invoice(number, f"CUST-{rng.randrange(40):03d}")
    kinds = list(VAT_RATES)
    for _ in range(n_lines):
        inv.lines.append(
            _Line(
                sku=f"SKU{rng.randrange(1000):04d}",
                qty=rng.randint(1, 12),
                price=Decimal(rng.randint(99, 25000)) / 100,
                vat=kinds[rng.randrange(len(kinds))],
            )
        )
    return inv


def _lcg(seed, a=1103515245, c=12345, m=2**31):
    while True:
        seed = (a * seed + c) % m
        yield seed


def _chunks(seq, size):
    for start in range(0, len(seq), size):
        yield seq[start:start + size]


def _words(count, seed=17):
    rng = random.Random(seed)
    letters = string.ascii_lowercase
    return ["".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(count)]


class _DSU:
    __slots__ = ("parent", "size", "sets")

    def __init__(self, n):
        self.parent = list(range(n))
        self.size = [1] * n
        self.sets = n

    def find(self, x):
        p = self.parent
        while p[x] != x:
            p[x] = p[p[x]]
            x = p[x]
        return x

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        self.sets -= 1
        return True


class _LRU:
    def __init__(self, capacity):
        self._cap = capacity
        self._data = OrderedDict()
        self.hits = 0
        self.misses = 0

    def get(self, key, compute):
        try:
            self._data.move_to_end(key)
        except KeyError:
            self.misses += 1
            value = self._data[key] = compute(key)
            if len(self._data) > self._cap:
                self._data.popitem(last=False)
            return value
        self.hits += 1
        return self._data[key]


class _TrieNode:
    __slots__ = ("kids", "count")

    def __init__(self):
        self.kids = {}
        self.count = 0


class _Trie:
    def __init__(self):
        self.root = _TrieNode()

    def add(self, word):
        node = self.root
        for ch in word:
            nxt = node.kids.get(ch)
            if nxt is None:
                nxt = node.kids[ch] = _TrieNode()
            node = nxt
        node.count += 1

    def with_prefix(self, prefix):
        node = self.root
        for ch in prefix:
            if ch not in node.kids:
                return
            node = node.kids[ch]
        stack = [(prefix, node)]
        while stack:
            text, node = stack.pop()
            if node.count:
                yield text
            for ch in sorted(node.kids, reverse=True):
                stack.append((text + ch, node.kids[ch]))


class _ListNode:
    def __init__(self, value, nxt=None):
        self.value = value
        self.next = nxt


class _RingBuffer:
    def __init__(self, size):
        self.buf = [0.0] * size
        self.size = size
        self.head = 0
        self.filled = 0

    def push(self, x):
        old = self.buf[self.head]
        self.buf[self.head] = x
        self.head = (self.head + 1) % self.size
        if self.filled < self.size:
            self.filled += 1
            return 0.0
        return old


class _IntervalNode:
    def __init__(self, center, overlapping, left, right):
        self.center = center
        self.by_start = sorted(overlapping)
        self.by_end = sorted(overlapping, key=lambda iv: -iv[1])
        self.left = left
        self.right = right

    @classmethod
    def build(cls, intervals):
        if not intervals:
            return None
        points = sorted(p for iv in intervals for p in iv)
        center = points[len(points) // 2]
        left = [iv for iv in intervals if iv[1] < center]
        right = [iv for iv in intervals if iv[0] > center]
        mid = [iv for iv in intervals if iv[0] <= center <= iv[1]]
        return cls(center, mid, cls.build(left), cls.build(right))

    def stab(self, x, out):
        if x < self.center:
            for iv in self.by_start:
                if iv[0] > x:
                    break
                out.append(iv)
            if self.left:
                self.left.stab(x, out)
        else:
            for iv in self.by_end:
                if iv[1] < x:
                    break
                out.append(iv)
            if self.right:
                self.right.stab(x, out)
        return out


class _Vec:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, o):
        return _Vec(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o):
        return _Vec(self.x - o.x, self.y - o.y, self.z - o.z)

    def __mul__(self, k):
        return _Vec(self.x * k, self.y * k, self.z * k)

    def norm2(self):
        return self.x * self.x + self.y * self.y + self.z * self.z


class _OrderState(Enum):
    NEW = "new"
    PAID = "paid"
    PACKED = "packed"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


class _IllegalTransition(Exception):
    pass


_ALLOWED = {
    _OrderState.NEW: {_OrderState.PAID, _OrderState.CANCELLED},
    _OrderState.PAID: {_OrderState.PACKED, _OrderState.CANCELLED},
    _OrderState.PACKED: {_OrderState.SHIPPED},
    _OrderState.SHIPPED: set(),
    _OrderState.CANCELLED: set(),
}


def _advance(current, target):
    if target not in _ALLOWED[current]:
        raise _IllegalTransition(f"{current.value} -> {target.value}")
    return target


def _deep_merge(base, override):
    merged = dict(base)
    for key, value in override.items():
        if key in merged and isinstance(merged[key], dict) and isinstance(value, dict):
            merged[key] = _deep_merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _matmul(a, b, mod=None):
    bt = list(zip(*b))
    out = [[sum(x * y for x, y in zip(row, col)) for col in bt] for row in a]
    if mod:
        out = [[v % mod for v in row] for row in out]
    return out


def _counted(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return fn(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


def _is_probable_prime(n):
    if n < 2:
        return False
    for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if n % p == 0:
            return n == p
    d, s = n - 1, 0
    while d % 2 == 0:
        d //= 2
        s += 1
    for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


_TOKEN_RE = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(.))")


class _Calc:
    def __init__(self, text):
        self.toks = [num or op for num, op in _TOKEN_RE.findall(text)]
        self.i = 0

    def peek(self):
        return self.toks[self.i] if self.i < len(self.toks) else None

    def take(self):
        tok = self.toks[self.i]
        self.i += 1
        return tok

    def expr(self):
        value = self.term()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value += self.term()
            else:
                value -= self.term()
        return value

    def term(self):
        value = self.factor()
        while self.peek() in ("*", "/"):
            if self.take() == "*":
                value *= self.factor()
            else:
                value /= self.factor()
        return value

    def factor(self):
        tok = self.take()
        if tok == "(":
            value = self.expr()
            self.take()
            return value
        if tok == "-":
            return -self.factor()
        return float(tok)


# --------------------------------------------------------------------------
# business code


def invoice_totals_by_customer():
    rng = random.Random(2024)
    totals = defaultdict(Decimal)
    for number in range(1, 301):
        inv = _make_invoice(rng, number, rng.randint(1, 9))
        totals[inv.customer] += inv.total()
    return sorted(totals.items(), key=lambda kv: (-kv[1], kv[0]))[:10]


def single_invoice_reminder_text():
    due = date(2023, 11, 14)
    today = date(2024, 1, 3)
    overdue = (today - due).days
    fee = Decimal("12.50") if overdue > 30 else Decimal("0")
    amount = Decimal("1480.20") + fee
    return f"Invoice 4411 is {overdue} days overdue. Please pay EUR {amount:,.2f}."


def parse_access_log():
    line_re = re.compile(
        r'^(?P<ip>\S+) - (?P<user>\S+) \[(?P<ts>[^\]]+)\] "(?P<verb>[A-Z]+) (?P<path>\S+) HTTP/1\.\d" '
        r"(?P<status>\d{3}) (?P<size>\d+|-)$"
    )
    rng = random.Random(5)
    paths = ["/", "/login", "/api/v1/orders", "/api/v1/items?page=2", "/static/app.js", "/healthz"]
    lines = []
    for i in range(6000):
        status = rng.choice([200, 200, 200, 200, 304, 404, 500])
        size = "-" if status == 304 else str(rng.randint(100, 90000))
        lines.append(
            f"10.0.{i % 7}.{rng.randrange(256)} - - [12/Mar/2024:10:{i // 100 % 60:02d}:{i % 60:02d} +0000] "
            f'"GET {rng.choice(paths)} HTTP/1.1" {status} {size}'
        )
    by_status = Counter()
    traffic = Counter()
    bad = 0
    for line in lines:
        m = line_re.match(line)
        if not m:
            bad += 1
            continue
        by_status[m["status"]] += 1
        if m["size"] != "-":
            traffic[m["path"].partition("?")[0]] += int(m["size"])
    return by_status, traffic.most_common(3), bad


def csv_roundtrip_pivot():
    header = ["region", "quarter", "product", "units", "revenue"]
    buf = io.StringIO()
    writer = csv.writer(buf)
    writer.writerow(header)
    gen = _lcg(99)
    for _ in range(4000):
        r = next(gen)
        writer.writerow([
            ("north", "south", "east", "west")[r >> 8 & 3],
            f"Q{(r >> 12) % 4 + 1}",
            f"product, {(r >> 16) % 25}",
            r % 50,
            f"{r % 100000 / 100:.2f}",
        ])
    buf.seek(0)
    pivot = {}
    for row in csv.DictReader(buf):
        cell = pivot.setdefault((row["region"], row["quarter"]), [0, 0.0])
        cell[0] += int(row["units"])
        cell[1] += float(row["revenue"])
    return {k: (u, round(rev, 2)) for k, (u, rev) in sorted(pivot.items())}


def json_document_diff():
    def make(version):
        return {
            "id": 7,
            "version": version,
            "tags": [f"t{i}" for i in range(version * 3)],
            "nodes": [
                {"name": f"n{i}", "weight": i * version % 11, "meta": {"x": i, "on": i % version == 0}}
                for i in range(12)
            ],
        }

    def walk(a, b, path=""):
        if type(a) is not type(b):
            yield path, a, b
        elif isinstance(a, dict):
            for key in sorted(a.keys() | b.keys()):
                yield from walk(a.get(key), b.get(key), f"{path}/{key}")
        elif isinstance(a, list):
            for i, (x, y) in enumerate(itertools.zip_longest(a, b)):
                yield from walk(x, y, f"{path}[{i}]")
        elif a != b:
            yield path, a, b

    old = json.loads(json.dumps(make(2)))
    new = json.loads(json.dumps(make(5)))
    changes = list(walk(old, new))
    return len(changes), changes[:3]


def merge_layered_config():
    defaults = {
        "server": {"host": "0.0.0.0", "port": 8080, "tls": {"enabled": False, "ciphers": ["A", "B"]}},
        "db": {"url": "sqlite://", "pool": {"min": 1, "max": 10}},
        "features": {"beta": False},
    }
    site = {"server": {"port": 443, "tls": {"enabled": True}}, "db": {"pool": {"max": 40}}}
    env = {"db": {"url": "postgres://db/main"}, "features": {"beta": True, "dark": True}}
    return functools.reduce(_deep_merge, [defaults, site, env])


def business_days_calendar():
    holidays = {date(y, m, d) for y in range(2020, 2031) for m, d in ((1, 1), (5, 1), (12, 25), (12, 26))}
    per_month = Counter()
    day = date(2020, 1, 1)
    end = date(2030, 12, 31)
    one = timedelta(days=1)
    while day <= end:
        if day.weekday() < 5 and day not in holidays:
            per_month[day.strftime("%Y-%m")] += 1
        day += one
    return min(per_month.values()), max(per_month.values()), len(per_month)


def paginate_with_links():
    items = [f"item-{i:05d}" for i in range(234)]
    pages = []
    total = math.ceil(len(items) / 25)
    for number, chunk in enumerate(_chunks(items, 25), 1):
        pages.append({
            "page": number,
            "items": chunk,
            "prev": f"/items?page={number - 1}" if number > 1 else None,
            "next": f"/items?page={number + 1}" if number < total else None,
        })
    return pages


def validate_signup_forms():
    email_re = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
    phone_re = re.compile(r"\+?\d[\d -]{6,14}\d")
    errors = Counter()
    accepted = []
    for i in range(800):
        form = {
            "email": f"user{i}@example.com" if i % 6 else f"user{i}example.com",
            "phone": f"+31 6 {i:08d}" if i % 5 else "n/a",
            "age": str(i % 90),
            "password": "Secret" * (i % 3) + str(i),
        }
        problems = []
        if not email_re.fullmatch(form["email"]):
            problems.append("email")
        if not phone_re.fullmatch(form["phone"]):
            problems.append("phone")
        if not form["age"].isdigit() or int(form["age"]) < 18:
            problems.append("age")
        pw = form["password"]
        if len(pw) < 8 or not any(c.isupper() for c in pw) or not any(c.isdigit() for c in pw):
            problems.append("password")
        if problems:
            errors.update(problems)
        else:
            accepted.append(form)
    return len(accepted), dict(errors)


def inventory_fifo_costing():
    Lot = namedtuple("Lot", "qty cost")
    rng = random.Random(8)
    stock = defaultdict(deque)
    cogs = defaultdict(int)
    short = 0
    for _ in range(15000):
        sku = rng.randrange(60)
        if rng.random() < 0.55:
            stock[sku].append(Lot(rng.randint(1, 20), rng.randint(100, 900)))
            continue
        want = rng.randint(1, 20)
        lots = stock[sku]
        while want and lots:
            lot = lots.popleft()
            used = min(want, lot.qty)
            cogs[sku] += used * lot.cost
            want -= used
            if lot.qty > used:
                lots.appendleft(lot._replace(qty=lot.qty - used))
        short += want
    on_hand = sum(l.qty for lots in stock.values() for l in lots)
    return sum(cogs.values()), on_hand, short


def order_state_machine():
    rng = random.Random(31)
    states = list(_OrderState)
    final = Counter()
    rejected = 0
    for _ in range(15):
        state = _OrderState.NEW
        for _ in range(12):
            try:
                state = _advance(state, rng.choice(states))
            except _IllegalTransition as exc:
                rejected += len(str(exc)) > 0
        final[state.name] += 1
    return final, rejected


def loan_amortization_schedule():
    with localcontext() as ctx:
        ctx.prec = 34
        principal = Decimal("325000")
        rate = Decimal("0.0415") / 12
        n = 360
        factor = (1 + rate) ** n
        payment = (principal * rate * factor / (factor - 1)).quantize(Decimal("0.01"))
        balance = principal
        rows = []
        for month in range(1, n + 1):
            interest = (balance * rate).quantize(Decimal("0.01"))
            part = min(payment - interest, balance)
            balance -= part
            rows.append((month, interest, part, balance))
        return payment, rows[-1], sum(r[1] for r in rows)


def fixed_width_sales_report():
    names = ["Alma", "Bruno", "Chidi", "Dorota", "Emeka", "Farah", "Gustav", "Hana"]
    out = []
    out.append("+" + "-" * 20 + "+" + "-" * 12 + "+" + "-" * 12 + "+")
    out.append("|{:^20}|{:^12}|{:^12}|".format("Rep", "Units", "Revenue"))
    out.append(out[0])
    grand = 0
    for i, name in enumerate(names):
        units = (i * 37 + 11) % 97
        rev = units * 19.99
        grand += rev
        out.append("|{:<20}|{:>12,d}|{:>12,.2f}|".format(name, units, rev))
    out.append(out[0])
    out.append("|{:<20}|{:>12}|{:>12,.2f}|".format("TOTAL", "", grand))
    return "\n".join(out)


def sessionize_clickstream():
    rng = random.Random(55)
    events = [(rng.randrange(2000), rng.randrange(7 * 86400)) for _ in range(120_000)]
    events.sort(key=operator.itemgetter(0, 1))
    sessions = []
    for user, group in itertools.groupby(events, key=operator.itemgetter(0)):
        first = last = None
        clicks = 0
        for _, ts in group:
            if last is not None and ts - last > 1800:
                sessions.append((user, first, last - first, clicks))
                first, clicks = ts, 0
            if first is None:
                first = ts
            last = ts
            clicks += 1
        sessions.append((user, first, last - first, clicks))
    return len(sessions), max(s[3] for s in sessions)


# --------------------------------------------------------------------------
# algorithms


def naive_fibonacci_counted():
    @_counted
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    value = fib(27)
    return value, fib.calls


def cached_grid_paths_with_obstacles():
    blocked = {(r, c) for r in range(60) for c in range(60) if (r * 7 + c * 13) % 11 == 4}

    @functools.lru_cache(maxsize=None)
    def paths(r, c):
        if r < 0 or c < 0 or (r, c) in blocked:
            return 0
        if r == c == 0:
            return 1
        return paths(r - 1, c) + paths(r, c - 1)

    return paths(59, 59)


def dijkstra_city_grid():
    width = height = 70
    cost = [[(x * 31 + y * 17) % 9 + 1 for x in range(width)] for y in range(height)]
    dist = {(0, 0): 0}
    queue = [(0, 0, 0)]
    settled = set()
    while queue:
        d, x, y = heapq.heappop(queue)
        if (x, y) in settled:
            continue
        settled.add((x, y))
        if (x, y) == (width - 1, height - 1):
            return d, len(settled)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            nx, ny = x + dx, y + dy
            if 0 <= nx < width and 0 <= ny < height:
                nd = d + cost[ny][nx]
                if nd < dist.get((nx, ny), float("inf")):
                    dist[nx, ny] = nd
                    heapq.heappush(queue, (nd, nx, ny))
    return None


def floyd_warshall_small():
    n = 90
    INF = 10**9
    d = [[INF] * n for _ in range(n)]
    for i in range(n):
        d[i][i] = 0
        for step in (1, 7, 19):
            d[i][(i * step + step) % n] = (i * step) % 23 + 1
    for k in range(n):
        dk = d[k]
        for i in range(n):
            di = d[i]
            dik = di[k]
            if dik == INF:
                continue
            for j in range(n):
                alt = dik + dk[j]
                if alt < di[j]:
                    di[j] = alt
    return sum(v for row in d for v in row if v < INF)


def kruskal_random_graph():
    rng = random.Random(12)
    n = 30_000
    edges = [(rng.random(), rng.randrange(n), rng.randrange(n)) for _ in range(250_000)]
    edges.sort()
    dsu = _DSU(n)
    weight = 0.0
    for w, a, b in edges:
        if dsu.union(a, b):
            weight += w
            if dsu.sets == 1:
                break
    return round(weight, 6), dsu.sets


def topo_sort_build_targets():
    deps = {
        "app": ["lib", "ui", "cfg"], "ui": ["widgets", "lib"], "widgets": ["core"], "lib": ["core", "log"],
        "log": ["fmt"], "fmt": [], "core": ["fmt"], "cfg": [], "tests": ["app"], "docs": ["cfg"],
    }
    indeg = {t: len(d) for t, d in deps.items()}
    users = defaultdict(list)
    for t, ds in deps.items():
        for d in ds:
            users[d].append(t)
    ready = sorted(t for t, k in indeg.items() if k == 0)
    order = []
    while ready:
        t = ready.pop(0)
        order.append(t)
        for u in users[t]:
            indeg[u] -= 1
            if not indeg[u]:
                bisect.insort(ready, u)
    if len(order) != len(deps):
        raise ValueError("cycle")
    return order


def kmp_search_periodic():
    pattern = "abacab" * 8 + "abc"
    text = ("abacab" * 30 + "x") * 40 + pattern + "abacababc" * 20 + pattern
    fail = [0] * len(pattern)
    k = 0
    for i in range(1, len(pattern)):
        while k and pattern[i] != pattern[k]:
            k = fail[k - 1]
        if pattern[i] == pattern[k]:
            k += 1
        fail[i] = k
    hits = []
    k = 0
    for i, ch in enumerate(text):
        while k and ch != pattern[k]:
            k = fail[k - 1]
        if ch == pattern[k]:
            k += 1
        if k == len(pattern):
            hits.append(i - k + 1)
            k = fail[k - 1]
    return hits


def suffix_array_doubling():
    s = "".join(random.Random(77).choices("acgt", k=200))
    n = len(s)
    rank = [ord(c) for c in s]
    sa = list(range(n))
    k = 1
    while True:
        key = [(rank[i], rank[i + k] if i + k < n else -1) for i in range(n)]
        sa.sort(key=key.__getitem__)
        new = [0] * n
        for prev, cur in zip(sa, sa[1:]):
            new[cur] = new[prev] + (key[prev] != key[cur])
        rank = new
        if rank[sa[-1]] == n - 1:
            return sa[:5]
        k *= 2


def longest_palindrome_centers():
    s = "neveroddoreven" * 4 + "amanaplanacanalpanama" + "xyzzy" * 6
    best = ""
    for i in range(len(s)):
        for lo, hi in ((i, i), (i, i + 1)):
            while lo >= 0 and hi < len(s) and s[lo] == s[hi]:
                lo -= 1
                hi += 1
            if hi - lo - 1 > len(best):
                best = s[lo + 1:hi]
    return best


def sieve_bytearray_twenty_million():
    limit = 20_000_000
    flags = bytearray([1]) * (limit + 1)
    flags[0] = flags[1] = 0
    for p in range(2, math.isqrt(limit) + 1):
        if flags[p]:
            flags[p * p::p] = bytes(len(range(p * p, limit + 1, p)))
    return sum(flags)


def next_primes_above_googolish():
    found = []
    candidate = 10**40 + 1
    while len(found) < 3:
        if _is_probable_prime(candidate):
            found.append(candidate - 10**40)
        candidate += 2
    return found


def extended_gcd_inverse():
    a, m = 123456789, 1_000_000_007
    old_r, r = a, m
    old_s, s = 1, 0
    while r:
        q = old_r // r
        old_r, r = r, old_r - q * r
        old_s, s = s, old_s - q * s
    return old_s % m


def convex_hull_spiral_points():
    pts = sorted({(round(math.cos(i * 0.7) * i), round(math.sin(i * 0.7) * i)) for i in range(1500)})

    def half(points):
        chain = []
        for p in points:
            while len(chain) >= 2:
                (ax, ay), (bx, by) = chain[-2], chain[-1]
                if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                    break
                chain.pop()
            chain.append(p)
        return chain[:-1]

    hull = half(pts) + half(reversed(pts))
    area2 = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in zip(hull, hull[1:] + hull[:1]))
    return len(hull), abs(area2) / 2


def closest_pair_bruteforce():
    rng = random.Random(6)
    pts = [(rng.uniform(0, 1000), rng.uniform(0, 1000)) for _ in range(2200)]
    return min(
        (math.dist(p, q), p, q)
        for p, q in itertools.combinations(pts, 2)
    )


def merge_sort_count_inversions():
    data = [(i * 7919) % 10007 for i in range(10007)]

    def sort(xs):
        if len(xs) < 2:
            return xs, 0
        mid = len(xs) // 2
        left, a = sort(xs[:mid])
        right, b = sort(xs[mid:])
        out = []
        i = j = 0
        inv = a + b
        while i < len(left) and j < len(right):
            if left[i] <= right[j]:
                out.append(left[i])
                i += 1
            else:
                out.append(right[j])
                j += 1
                inv += len(left) - i
        out.extend(left[i:])
        out.extend(right[j:])
        return out, inv

    ordered, inversions = sort(data)
    assert ordered == list(range(10007))
    return inversions


def insertion_sort_ledger_entries():
    entries = [{"id": i, "amount": (i * 53) % 101} for i in range(120)]
    for i in range(1, len(entries)):
        cur = entries[i]
        j = i - 1
        while j >= 0 and entries[j]["amount"] > cur["amount"]:
            entries[j + 1] = entries[j]
            j -= 1
        entries[j + 1] = cur
    return [e["id"] for e in entries[:5]]


def radix_sort_big_keys():
    gen = _lcg(2)
    keys = list(itertools.islice(gen, 150_000))
    for shift in (0, 8, 16, 24):
        buckets = [[] for _ in range(256)]
        for k in keys:
            buckets[k >> shift & 255].append(k)
        keys = list(itertools.chain.from_iterable(buckets))
    return keys[0], keys[-1]


def sudoku_backtracking():
    grid = [int(c) for c in
            "530070000600195000098000060800060003400803001700020006060000280000419005000080079"]
    peers = []
    for i in range(81):
        r, c = divmod(i, 9)
        box = {(r // 3 * 3 + a) * 9 + c // 3 * 3 + b for a in range(3) for b in range(3)}
        peers.append((box | {r * 9 + k for k in range(9)} | {k * 9 + c for k in range(9)}) - {i})

    def solve():
        best = None
        for i, v in enumerate(grid):
            if v == 0:
                options = set(range(1, 10)) - {grid[p] for p in peers[i]}
                if best is None or len(options) < len(best[1]):
                    best = (i, options)
                    if len(options) <= 1:
                        break
        if best is None:
            return True
        i, options = best
        for v in sorted(options):
            grid[i] = v
            if solve():
                return True
        grid[i] = 0
        return False

    solve()
    return "".join(map(str, grid))


def matrix_power_linear_recurrence():
    k = 12
    mod = 998_244_353
    m = [[0] * k for _ in range(k)]
    m[0] = [i + 1 for i in range(k)]
    for i in range(1, k):
        m[i][i - 1] = 1
    result = [[int(i == j) for j in range(k)] for i in range(k)]
    e = 10**9
    while e:
        if e & 1:
            result = _matmul(result, m, mod)
        m = _matmul(m, m, mod)
        e >>= 1
    return result[0][0]


def hilbert_determinant_fraction():
    n = 6
    a = [[Fraction(1, i + j + 1) for j in range(n)] for i in range(n)]
    det = Fraction(1)
    for c in range(n):
        pivot = next(r for r in range(c, n) if a[r][c])
        if pivot != c:
            a[c], a[pivot] = a[pivot], a[c]
            det = -det
        det *= a[c][c]
        for r in range(c + 1, n):
            f = a[r][c] / a[c][c]
            a[r] = [x - f * y for x, y in zip(a[r], a[c])]
    return det.denominator


def monte_carlo_bank_queue():
    rng = random.Random(2718)
    clock = 0.0
    tellers = [0.0] * 4
    heapq.heapify(tellers)
    waits = []
    for _ in range(900_000):
        clock += rng.expovariate(1.0)
        free_at = heapq.heappop(tellers)
        start = max(clock, free_at)
        waits.append(start - clock)
        heapq.heappush(tellers, start + rng.expovariate(0.28))
    waits.sort()
    return sum(waits) / len(waits), waits[int(len(waits) * 0.95)]


def collatz_longest_with_memo_dict():
    lengths = {1: 1}
    best = (1, 1)
    for start in range(1, 150_000):
        n = start
        trail = []
        while n not in lengths:
            trail.append(n)
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        base = lengths[n]
        for back, m in enumerate(reversed(trail), 1):
            lengths[m] = base + back
        if lengths[start] > best[1]:
            best = (start, lengths[start])
    return best


# --------------------------------------------------------------------------
# data structures


def lru_cache_zipf_hits():
    rng = random.Random(10)
    cache = _LRU(200)
    keys = [int(rng.paretovariate(0.8)) % 5000 for _ in range(25_000)]
    checksum = 0
    for key in keys:
        checksum ^= cache.get(key, lambda k: hash((k, k * k)) & 0xFFFF)
    return cache.hits, cache.misses, checksum


def trie_autocomplete():
    trie = _Trie()
    for w in _words(5000):
        trie.add(w)
    suggestions = {}
    for prefix in ("a", "qu", "st", "zz", "mor"):
        suggestions[prefix] = list(itertools.islice(trie.with_prefix(prefix), 8))
    return suggestions


def reverse_linked_list_in_groups():
    head = None
    for v in range(149, -1, -1):
        head = _ListNode(v, head)
    dummy = _ListNode(None, head)
    tail = dummy
    while True:
        probe = tail
        for _ in range(4):
            probe = probe.next
            if probe is None:
                break
        if probe is None:
            break
        first = tail.next
        prev, node = probe.next, first
        for _ in range(4):
            node.next, prev, node = prev, node, node.next
        tail.next = prev
        tail = first
    out = []
    node = dummy.next
    while node:
        out.append(node.value)
        node = node.next
    return out[:8], len(out)


def moving_average_ring_buffer():
    ring = _RingBuffer(64)
    total = 0.0
    peak = 0.0
    for i in range(40_000):
        sample = math.sin(i / 50) + (i % 13) / 13
        total += sample - ring.push(sample)
        avg = total / ring.filled
        if avg > peak:
            peak = avg
    return round(peak, 6)


def interval_tree_stabbing():
    rng = random.Random(90)
    ivs = []
    for _ in range(2000):
        lo = rng.randrange(100_000)
        ivs.append((lo, lo + rng.randrange(1, 800)))
    tree = _IntervalNode.build(ivs)
    return sum(len(tree.stab(x, [])) for x in range(0, 100_000, 250))


def bst_objects_by_dict_nodes():
    root = None
    for i in range(120):
        key = (i * 2654435761) & 0xFFFFF
        node = {"k": key, "l": None, "r": None}
        if root is None:
            root = node
            continue
        cur = root
        while True:
            side = "l" if key < cur["k"] else "r"
            if cur[side] is None:
                cur[side] = node
                break
            cur = cur[side]

    def height(n):
        return 0 if n is None else 1 + max(height(n["l"]), height(n["r"]))

    return height(root)


def huge_adjacency_matrix_degree():
    n = 2500
    adj = [[1 if (i ^ j) % 5 == 0 else 0 for j in range(n)] for i in range(n)]
    degrees = [sum(row) for row in adj]
    columns = [sum(col) for col in zip(*adj)]
    return max(degrees), max(columns)


def inverted_index_queries():
    rng = random.Random(61)
    vocab = _words(900, seed=4)
    docs = [" ".join(rng.choices(vocab, k=60)) for _ in range(1500)]
    index = defaultdict(set)
    for doc_id, text in enumerate(docs):
        for w in text.split():
            index[w].add(doc_id)
    hits = 0
    for a, b, c in zip(vocab, vocab[1:], vocab[2:]):
        hits += len((index[a] & index[b]) | (index[a] - index[c]))
    return hits


# --------------------------------------------------------------------------
# odds and ends


def generator_pipeline_squares():
    def naturals():
        n = 2
        while True:
            yield n
            n += 1

    def keep(source, pred):
        for item in source:
            if pred(item):
                yield item

    odd = keep(naturals(), lambda n: n % 2)
    not3 = keep(odd, lambda n: n % 3)
    square_ends = (n * n for n in not3 if str(n * n).endswith("49"))
    return list(itertools.islice(square_ends, 12))


def closure_compose_counter():
    def make(step):
        state = 0

        def bump(k=1):
            nonlocal state
            state += step * k
            return state

        return bump

    a, b = make(2), make(5)
    for i in range(30):
        a(i)
        if i & 1:
            b()
    return a(0), b(0)


def expression_evaluator():
    source = "3 + 4 * (2 - 7) / 5 - -(8.5 * 2)"
    nested = "(" * 15 + source + ")" * 15
    return [round(_Calc(" + ".join([nested] * n)).expr(), 6) for n in range(1, 3)]


def redact_with_regex_callbacks():
    para = (
        "Contact jane.doe@corp.example or +44 20 7946 0958, card 4111 1111 1111 1111, "
        "ref INV-2023-00417 issued 2023-09-30 to Jane Doe. "
    )
    text = para * 300
    text = re.sub(r"\b(\d{4}) \d{4} \d{4} (\d{4})\b", lambda m: f"{m[1]} **** **** {m[2]}", text)
    text = re.sub(r"[\w.]+@([\w.]+)", r"***@\1", text)
    text = re.sub(r"INV-(\d{4})-(\d+)", lambda m: f"INV-{m[1]}-{int(m[2]):x}", text)
    return len(text), text.count("*")


def hash_chain_proof_of_work():
    prev = b"genesis"
    nonces = []
    for block in range(4):
        nonce = 0
        while True:
            digest = hashlib.sha256(prev + block.to_bytes(2, "big") + str(nonce).encode()).digest()
            if digest[0] == 0 and digest[1] < 2:
                break
            nonce += 1
        nonces.append(nonce)
        prev = digest
    return nonces


def popcount_gray_code_check():
    def gray(n):
        return n ^ (n >> 1)

    return all((gray(i) ^ gray(i + 1)).bit_count() == 1 for i in range(1 << 8))


def pi_digits_decimal_chudnovsky():
    with localcontext() as ctx:
        ctx.prec = 520
        c = 426880 * Decimal(10005).sqrt()
        m, l, x, k = 1, 13591409, 1, -6
        s = Decimal(l)
        for i in range(1, 37):
            k += 12
            m = m * (k**3 - 16 * k) // i**3
            l += 545140134
            x *= -262537412640768000
            s += Decimal(m * l) / x
        return str(c / s)[-20:]


def build_and_compress_large_payload():
    record = {"sensor": "A-17", "unit": "C", "values": [round(i * 0.37 % 9, 2) for i in range(40)]}
    payload = []
    for i in range(60_000):
        payload.append(json.dumps({**record, "seq": i}))
    blob = "\n".join(payload).encode("ascii")
    packed = zlib.compress(blob, 1)
    return len(blob), len(packed), zlib.crc32(zlib.decompress(packed))


def transaction_rollback_contexts():
    accounts = {f"acc{i}": 400 for i in range(50)}

    @contextmanager
    def transaction(store):
        snapshot = store.copy()
        try:
            yield store
        except ValueError:
            store.clear()
            store.update(snapshot)

    gen = _lcg(41)
    failed = 0
    for _ in range(25):
        src, dst, amount = (next(gen) >> 7 for _ in range(3))
        with transaction(accounts) as acc:
            a, b = f"acc{src % 50}", f"acc{dst % 50}"
            acc[a] -= amount % 700
            acc[b] += amount % 700
            if acc[a] < 0:
                failed += 1
                raise ValueError(a)
    return failed, sum(accounts.values())


def wrap_and_justify_text():
    words = _words(1500, seed=23)
    out = []
    for line in textwrap.wrap(" ".join(words), width=64):
        parts = line.split()
        gaps = len(parts) - 1
        if not gaps:
            out.append(line)
            continue
        spare = 64 - sum(map(len, parts))
        q, r = divmod(spare, gaps)
        s = parts[0]
        for i, word in enumerate(parts[1:]):
            s += " " * (q + (i < r)) + word
        out.append(s)
    return len(out), out[0]


def four_sum_pairs_dictionary():
    nums = [(i * 97) % 1009 - 500 for i in range(700)]
    pair_sums = defaultdict(list)
    for i in range(len(nums)):
        for j in range(i + 1, len(nums)):
            pair_sums[nums[i] + nums[j]].append((i, j))
    total = 0
    for s, pairs in pair_sums.items():
        if s >= 0 and -s in pair_sums:
            total += len(pairs) * len(pair_sums[-s])
    return total


def luhn_check_batch():
    def valid(number):
        total = 0
        for i, ch in enumerate(reversed(number)):
            d = ord(ch) - 48
            if i % 2:
                d *= 2
                if d > 9:
                    d -= 9
            total += d
        return total % 10 == 0

    return [n for n in ("4539578763621486", "8273123273520569", "79927398713", "0000000000000000") if valid(n)]


def clamp_temperature():
    reading, lo, hi = 98.6, -40.0, 85.0
    return lo if reading < lo else hi if reading > hi else reading


def subset_sum_bigint_bits():
    reachable = 1
    for i in range(1, 401):
        reachable |= reachable << (i * 17 % 1000 + 1)
    half = reachable.bit_length() // 2
    while not reachable >> half & 1:
        half -= 1
    return half
