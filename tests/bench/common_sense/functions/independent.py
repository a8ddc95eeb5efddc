"""Functions of an author who did not know the analysis: nothing was changed because of them."""

import base64
import bisect
import calendar
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
import statistics
import struct
import textwrap
import zlib
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from fractions import Fraction
from typing import List


# ---------------------------------------------------------------- backend

class _Status(Enum):
    NEW = "new"
    PAID = "paid"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


@dataclass
class _Line:
    sku: str
    qty: int
    unit_price: Decimal

    @property
    def total(self) -> Decimal:
        return self.unit_price * self.qty


@dataclass
class _Order:
    order_id: int
    customer: str
    status: _Status = _Status.NEW
    lines: List[_Line] = field(default_factory=list)

    def subtotal(self) -> Decimal:
        return sum((line.total for line in self.lines), Decimal("0"))


_TAX_RATES = {"DE": Decimal("0.19"), "FR": Decimal("0.20"), "US": Decimal("0.0725"), "JP": Decimal("0.10")}
_CENT = Decimal("0.01")


def _make_orders(n, seed=11):
    rng = random.Random(seed)
    statuses = list(_Status)
    orders = []
    for oid in range(n):
        order = _Order(oid, f"cust-{rng.randrange(50):03d}", rng.choice(statuses))
        for _ in range(rng.randint(1, 5)):
            price = Decimal(rng.randint(99, 19999)) / 100
            order.lines.append(_Line(f"SKU{rng.randrange(400):04d}", rng.randint(1, 9), price))
        orders.append(order)
    return orders


def invoice_totals_by_country():
    orders = _make_orders(600)
    countries = sorted(_TAX_RATES)
    totals = defaultdict(Decimal)
    for order in orders:
        if order.status is _Status.CANCELLED:
            continue
        country = countries[order.order_id % len(countries)]
        net = order.subtotal()
        tax = (net * _TAX_RATES[country]).quantize(_CENT, rounding=ROUND_HALF_UP)
        totals[country] += net + tax
    return {c: str(t) for c, t in sorted(totals.items())}


class _ValidationError(Exception):
    def __init__(self, errors):
        super().__init__("; ".join(errors))
        self.errors = errors


_EMAIL_RE = re.compile(r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$")


def _validate_user(payload):
    errors = []
    if not payload.get("name", "").strip():
        errors.append("name: required")
    if not _EMAIL_RE.match(payload.get("email", "")):
        errors.append("email: invalid")
    try:
        age = int(payload.get("age", ""))
    except (TypeError, ValueError):
        errors.append("age: not a number")
    else:
        if not 0 < age < 130:
            errors.append("age: out of range")
    if errors:
        raise _ValidationError(errors)
    return {"name": payload["name"].strip(), "email": payload["email"].lower(), "age": age}


def validate_signup_batch():
    names = ["Ann", "  ", "Bob", "Çelik", ""]
    emails = ["ann@example.com", "bob(at)example", "c.d+tag@mail.example.org", "@nope.io"]
    ages = ["31", "x", None, "200", 44, "-1", "18"]
    ok, rejected = [], Counter()
    for i in range(350):
        payload = {
            "name": names[i % len(names)],
            "email": emails[i % len(emails)],
            "age": ages[i % len(ages)],
        }
        try:
            ok.append(_validate_user(payload))
        except _ValidationError as exc:
            for err in exc.errors:
                rejected[err.split(":")[0]] += 1
    return len(ok), dict(rejected)


def parse_one_iso_timestamp():
    stamp = datetime.fromisoformat("2024-02-29T13:45:10")
    return (stamp + timedelta(days=366)).strftime("%Y/%m/%d %H:%M")


def feature_flag_lookup():
    defaults = {"dark_mode": False, "beta": False, "page_size": 25, "locale": "en"}
    team = {"beta": True, "page_size": 50}
    user = {"dark_mode": True}
    settings = ChainMap(user, team, defaults)
    return [settings[key] for key in ("dark_mode", "beta", "page_size", "locale")]


_INI_TEXT = """
; service configuration
[server]
host = 0.0.0.0
port = 8080
debug = off
workers = 4

[database]
url = postgres://app:secret@db/prod
pool_size = 20
timeout = 2.5
echo = no

[cache]
backend = redis
ttl = 300
enabled = yes
"""


def _coerce(raw):
    low = raw.lower()
    if low in ("yes", "on", "true"):
        return True
    if low in ("no", "off", "false"):
        return False
    for cast in (int, float):
        try:
            return cast(raw)
        except ValueError:
            pass
    return raw


def load_ini_settings():
    config, section = {}, None
    for raw in _INI_TEXT.splitlines():
        line = raw.strip()
        if not line or line[0] in ";#":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = config.setdefault(line[1:-1], {})
        else:
            key, _, value = line.partition("=")
            section[key.strip()] = _coerce(value.strip())
    return config


def access_log_summary():
    rng = random.Random(404)
    paths = ["/", "/login", "/api/items", "/api/items/42", "/static/app.js", "/admin"]
    lines = []
    for i in range(9000):
        ip = f"10.0.{rng.randrange(4)}.{rng.randrange(256)}"
        status = rng.choices([200, 301, 404, 500], weights=[80, 8, 9, 3])[0]
        lines.append(
            f'{ip} - - [12/Mar/2024:{i // 400:02d}:{i % 60:02d}:00 +0000] '
            f'"GET {rng.choice(paths)} HTTP/1.1" {status} {rng.randrange(200, 50000)}'
        )
    pattern = re.compile(r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\w+) (\S+) [^"]*" (\d{3}) (\d+)$')
    hits, bytes_sent, errors = Counter(), Counter(), defaultdict(set)
    for line in lines:
        m = pattern.match(line)
        if m is None:
            continue
        ip, _, _, path, status, size = m.groups()
        hits[path] += 1
        bytes_sent[path] += int(size)
        if status[0] in "45":
            errors[status].add(ip)
    return hits.most_common(3), bytes_sent["/"], {k: len(v) for k, v in errors.items()}


def paginate_with_cursor():
    items = [{"id": i * 3 + 1, "title": "item %d" % i} for i in range(1200)]
    ids = [it["id"] for it in items]

    def page(cursor, limit):
        start = bisect.bisect_right(ids, cursor)
        chunk = items[start:start + limit]
        nxt = chunk[-1]["id"] if len(chunk) == limit else None
        return chunk, nxt

    seen, cursor, pages = 0, 0, 0
    while cursor is not None:
        chunk, cursor = page(cursor, 40)
        seen += len(chunk)
        pages += 1
    return seen, pages


class _TTLCache:
    def __init__(self, maxsize, ttl):
        self.maxsize = maxsize
        self.ttl = ttl
        self._data = OrderedDict()
        self.hits = self.misses = 0

    def get(self, key, now):
        entry = self._data.get(key)
        if entry is None or now - entry[1] > self.ttl:
            self._data.pop(key, None)
            self.misses += 1
            return None
        self._data.move_to_end(key)
        self.hits += 1
        return entry[0]

    def put(self, key, value, now):
        self._data[key] = (value, now)
        self._data.move_to_end(key)
        while len(self._data) > self.maxsize:
            self._data.popitem(last=False)


def ttl_cache_replay():
    rng = random.Random(7)
    cache = _TTLCache(500, 3000)
    for now in range(60000):
        key = int(rng.paretovariate(0.8)) % 5000
        if cache.get(key, now) is None:
            cache.put(key, key * key, now)
    return cache.hits, cache.misses


def json_roundtrip_catalog():
    catalog = {
        "version": 3,
        "products": [
            {
                "sku": f"P-{n:05d}",
                "price": round(n * 1.37 % 500, 2),
                "tags": ["t%d" % (n % k) for k in (3, 5, 7)],
                "stock": {"berlin": n % 11, "lyon": n % 13},
                "active": n % 4 != 0,
            }
            for n in range(2500)
        ],
    }
    text = json.dumps(catalog, sort_keys=True, indent=2)
    again = json.loads(text)
    return len(text), sum(p["stock"]["lyon"] for p in again["products"] if p["active"])


class _RateLimiter:
    def __init__(self, capacity, refill_per_sec):
        self.capacity = capacity
        self.refill = refill_per_sec
        self.buckets = {}

    def allow(self, client, t):
        tokens, last = self.buckets.get(client, (self.capacity, t))
        tokens = min(self.capacity, tokens + (t - last) * self.refill)
        if tokens >= 1:
            self.buckets[client] = (tokens - 1, t)
            return True
        self.buckets[client] = (tokens, t)
        return False


def token_bucket_requests():
    limiter = _RateLimiter(5, 0.5)
    denied = 0
    for i in range(800):
        if not limiter.allow("client%d" % (i * i % 7), i * 0.2):
            denied += 1
    return denied


def _audited(log):
    def decorate(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            try:
                result = fn(*args, **kwargs)
            except Exception as exc:
                log.append((fn.__name__, type(exc).__name__))
                raise
            log.append((fn.__name__, "ok"))
            return result
        return inner
    return decorate


def audited_transfers():
    log = []
    accounts = {"a": 900, "b": 150, "c": 0}

    @_audited(log)
    def transfer(src, dst, amount):
        if amount <= 0:
            raise ValueError("amount")
        if accounts[src] < amount:
            raise RuntimeError("insufficient funds")
        accounts[src] -= amount
        accounts[dst] += amount

    script = [("a", "b", 300), ("c", "a", 1), ("b", "c", 200), ("b", "zz", 5), ("a", "c", -4)] * 6
    for args in script:
        try:
            transfer(*args)
        except (KeyError, RuntimeError, ValueError):
            continue
    return accounts, Counter(outcome for _, outcome in log)


def signed_session_tokens():
    secret = b"not-so-secret"
    good = 0
    for uid in range(250):
        body = base64.urlsafe_b64encode(json.dumps({"uid": uid, "role": "user"}).encode())
        sig = hashlib.sha256(secret + body).hexdigest()[:32]
        token = body.decode() + "." + sig
        if uid % 10 == 3:
            token = token[:-1] + ("0" if token[-1] != "0" else "1")
        head, _, tail = token.rpartition(".")
        if hashlib.sha256(secret + head.encode()).hexdigest()[:32] == tail:
            good += json.loads(base64.urlsafe_b64decode(head))["uid"]
    return good


def stretch_password_digest():
    digest = hashlib.pbkdf2_hmac("sha256", b"correct horse battery", b"staple", 120_000)
    return digest.hex()


# ---------------------------------------------------------- data analyst

def _sales_csv(rows, seed=3):
    rng = random.Random(seed)
    buf = io.StringIO()
    writer = csv.writer(buf)
    writer.writerow(["date", "region", "product", "units", "revenue"])
    start = date(2022, 1, 1)
    for i in range(rows):
        day = start + timedelta(days=rng.randrange(730))
        units = rng.randint(1, 40)
        writer.writerow([
            day.isoformat(),
            rng.choice(["north", "south", "east", "west"]),
            rng.choice(["widget", "gadget, large", "doohickey"]),
            units,
            f"{units * rng.uniform(4, 90):.2f}",
        ])
    return buf.getvalue()


def monthly_revenue_pivot():
    table = defaultdict(lambda: defaultdict(float))
    for row in csv.DictReader(io.StringIO(_sales_csv(20000))):
        month = datetime.strptime(row["date"], "%Y-%m-%d").strftime("%Y-%m")
        table[month][row["region"]] += float(row["revenue"])
    regions = ["north", "south", "east", "west"]
    lines = ["month    " + "".join(f"{r:>14}" for r in regions)]
    for month in sorted(table):
        lines.append(f"{month:<9}" + "".join(f"{table[month][r]:>14,.2f}" for r in regions))
    return "\n".join(lines)


def describe_measurements():
    rng = random.Random(99)
    values = [rng.gauss(20, 4) for _ in range(3000)]
    ordered = sorted(values)
    q1, q2, q3 = statistics.quantiles(ordered, n=4)
    mu = statistics.fmean(values)
    sd = statistics.pstdev(values, mu)
    iqr = q3 - q1
    outliers = [v for v in values if v < q1 - 1.5 * iqr or v > q3 + 1.5 * iqr]
    return round(mu, 3), round(sd, 3), round(q2, 3), len(outliers)


def moving_average_series():
    prices = [100 + 10 * math.sin(t / 9) + (t * 37 % 17) / 4 for t in range(40000)]
    window, total, out = deque(), 0.0, []
    for p in prices:
        window.append(p)
        total += p
        if len(window) > 50:
            total -= window.popleft()
        out.append(total / len(window))
    crossings = sum(1 for a, b, m, n in zip(prices, prices[1:], out, out[1:]) if (a - m) * (b - n) < 0)
    return crossings


def simple_linear_fit():
    xs = list(range(24))
    ys = [3.1 * x + 7 + (-1) ** x * 0.5 for x in xs]
    n = len(xs)
    mx, my = sum(xs) / n, sum(ys) / n
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys))
    sxx = sum((x - mx) ** 2 for x in xs)
    slope = sxy / sxx
    return slope, my - slope * mx


def kmeans_on_blobs():
    rng = random.Random(2024)
    centers = [(0, 0), (6, 1), (3, 7), (-5, 5)]
    points = [(rng.gauss(cx, 1.1), rng.gauss(cy, 1.1)) for cx, cy in centers for _ in range(400)]
    means = [points[i] for i in (5, 450, 850, 1250)]
    for _ in range(12):
        groups = [[] for _ in means]
        for p in points:
            best = min(range(len(means)), key=lambda k: (p[0] - means[k][0]) ** 2 + (p[1] - means[k][1]) ** 2)
            groups[best].append(p)
        means = [
            (sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) if g else m
            for g, m in zip(groups, means)
        ]
    return [(round(x, 2), round(y, 2)) for x, y in sorted(means)]


def word_pair_frequencies():
    rng = random.Random(15)
    vocab = ["".join(rng.choices("aeioulnrst", k=rng.randint(2, 7))) for _ in range(900)]
    text = " ".join(rng.choice(vocab) for _ in range(120000))
    words = re.findall(r"[a-z]+", text)
    pairs = Counter(zip(words, words[1:]))
    return pairs.most_common(5), len(pairs)


_Reading = namedtuple("_Reading", "sensor hour value")


def sensor_group_report():
    readings = [_Reading(f"s{i % 6}", (i * 7) % 24, (i * 31 % 101) / 10) for i in range(480)]
    readings.sort(key=operator.attrgetter("sensor", "hour"))
    report = []
    for sensor, grp in itertools.groupby(readings, key=operator.attrgetter("sensor")):
        rows = list(grp)
        peak = max(rows, key=lambda r: r.value)
        avg = sum(r.value for r in rows) / len(rows)
        report.append(f"{sensor}: n={len(rows)} avg={avg:.2f} peak={peak.value}@{peak.hour:02d}h")
    return "\n".join(report)


def inner_join_tables():
    users = [{"id": i, "plan": "pro" if i % 9 == 0 else "free", "country": "ABCDE"[i % 5]} for i in range(20000)]
    events = [(i * 7919 % 26000, i % 50) for i in range(150000)]
    by_id = {u["id"]: u for u in users}
    joined = [
        {"uid": uid, "plan": by_id[uid]["plan"], "country": by_id[uid]["country"], "score": score}
        for uid, score in events
        if uid in by_id
    ]
    agg = defaultdict(lambda: [0, 0])
    for row in joined:
        cell = agg[row["plan"], row["country"]]
        cell[0] += 1
        cell[1] += row["score"]
    return {k: s / n for k, (n, s) in agg.items()}


def percentile_of_large_sample():
    rng = random.Random(1)
    data = array("d", (rng.random() for _ in range(1_500_000)))
    ranked = sorted(data)
    return [round(ranked[int(len(ranked) * p)], 4) for p in (0.01, 0.5, 0.95, 0.99)]


def _workdays(start, days):
    for offset in range(days):
        d = start + timedelta(days=offset)
        if d.weekday() < 5:
            yield d


def fiscal_quarter_counts():
    counts = Counter()
    for d in _workdays(date(2019, 4, 1), 365 * 3):
        fy = d.year if d.month >= 4 else d.year - 1
        counts[f"FY{fy}Q{(d.month - 4) % 12 // 3 + 1}"] += 1
    return sorted(counts.items())


# ---------------------------------------------------------- game hobbyist

def life_glider_gun():
    art = [
        "........................O...........",
        "......................O.O...........",
        "............OO......OO............OO",
        "...........O...O....OO............OO",
        "OO........O.....O...OO..............",
        "OO........O...O.OO....O.O...........",
        "..........O.....O.......O...........",
        "...........O...O....................",
        "............OO......................",
    ]
    alive = {(r, c) for r, line in enumerate(art) for c, ch in enumerate(line) if ch == "O"}
    for _ in range(120):
        near = Counter(
            (r + dr, c + dc)
            for r, c in alive
            for dr in (-1, 0, 1)
            for dc in (-1, 0, 1)
            if dr or dc
        )
        alive = {cell for cell, n in near.items() if n == 3 or (n == 2 and cell in alive)}
    return len(alive)


@dataclass(frozen=True)
class _Vec:
    x: float
    y: float

    def __add__(self, o):
        return _Vec(self.x + o.x, self.y + o.y)

    def __mul__(self, k):
        return _Vec(self.x * k, self.y * k)


def bouncing_particles():
    pos = [_Vec(i * 1.5, i * 0.7 + 2) for i in range(30)]
    vel = [_Vec(3 - i % 7, i % 5 - 2) for i in range(30)]
    gravity = _Vec(0, -9.8)
    dt = 1 / 60
    for _ in range(150):
        for i in range(len(pos)):
            vel[i] = vel[i] + gravity * dt
            p = pos[i] + vel[i] * dt
            if p.y < 0:
                p = _Vec(p.x, -p.y)
                vel[i] = _Vec(vel[i].x, -vel[i].y * 0.8)
            pos[i] = p
    return round(sum(p.x for p in pos), 3), round(max(p.y for p in pos), 3)


def _carve_maze(w, h, rng):
    grid = [["#"] * (2 * w + 1) for _ in range(2 * h + 1)]
    stack = [(0, 0)]
    grid[1][1] = " "
    while stack:
        x, y = stack[-1]
        options = []
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            nx, ny = x + dx, y + dy
            if 0 <= nx < w and 0 <= ny < h and grid[2 * ny + 1][2 * nx + 1] == "#":
                options.append((nx, ny, dx, dy))
        if not options:
            stack.pop()
            continue
        nx, ny, dx, dy = rng.choice(options)
        grid[2 * y + 1 + dy][2 * x + 1 + dx] = " "
        grid[2 * ny + 1][2 * nx + 1] = " "
        stack.append((nx, ny))
    return grid


def maze_solver_astar():
    grid = _carve_maze(60, 40, random.Random(8))
    goal = (2 * 60 - 1, 2 * 40 - 1)
    heap = [(0, 0, (1, 1))]
    best = {(1, 1): 0}
    expanded = 0
    while heap:
        _, g, (x, y) = heapq.heappop(heap)
        expanded += 1
        if (x, y) == goal:
            return g, expanded
        for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if grid[ny][nx] == "#":
                continue
            ng = g + 1
            if ng < best.get((nx, ny), 1 << 30):
                best[nx, ny] = ng
                heapq.heappush(heap, (ng + abs(goal[0] - nx) + abs(goal[1] - ny), ng, (nx, ny)))
    return None


def tic_tac_toe_minimax():
    wins = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    nodes = 0

    def winner(b):
        for i, j, k in wins:
            if b[i] != "." and b[i] == b[j] == b[k]:
                return b[i]
        return None

    def search(board, player):
        nonlocal nodes
        nodes += 1
        w = winner(board)
        if w:
            return 1 if w == "X" else -1
        if "." not in board:
            return 0
        scores = []
        for i in range(9):
            if board[i] == ".":
                board[i] = player
                scores.append(search(board, "O" if player == "X" else "X"))
                board[i] = "."
        return max(scores) if player == "X" else min(scores)

    return search(list("X...O...."), "X"), nodes


class _Hero:
    __slots__ = ("name", "hp", "attack", "armor", "log")

    def __init__(self, name, hp, attack, armor):
        self.name, self.hp, self.attack, self.armor = name, hp, attack, armor
        self.log = []

    def hit(self, other, rng):
        roll = rng.randint(1, 20)
        dmg = max(0, self.attack + roll - other.armor)
        if roll == 20:
            dmg *= 2
        other.hp -= dmg
        self.log.append(dmg)


def duel_tournament():
    rng = random.Random(77)
    wins = Counter()
    for _ in range(700):
        a, b = _Hero("Knight", 120, 6, 14), _Hero("Rogue", 90, 9, 12)
        while True:
            a.hit(b, rng)
            if b.hp <= 0:
                wins[a.name] += 1
                break
            b.hit(a, rng)
            if a.hp <= 0:
                wins[b.name] += 1
                break
    return dict(wins)


def mandelbrot_ascii():
    palette = " .:-=+*#%@"
    rows = []
    for j in range(36):
        row = []
        for i in range(100):
            c = complex(-2.2 + i * 0.032, -1.2 + j * 0.0667)
            z, n = 0j, 0
            while n < 90 and abs(z) <= 2:
                z = z * z + c
                n += 1
            row.append(palette[n * 9 // 90])
        rows.append("".join(row))
    return "\n".join(rows)


def flood_fill_islands():
    rng = random.Random(31)
    w, h = 160, 120
    land = [[rng.random() < 0.55 for _ in range(w)] for _ in range(h)]
    sizes = []
    for y in range(h):
        for x in range(w):
            if not land[y][x]:
                continue
            land[y][x] = False
            queue, size = deque([(x, y)]), 0
            while queue:
                cx, cy = queue.popleft()
                size += 1
                for nx, ny in ((cx + 1, cy), (cx - 1, cy), (cx, cy + 1), (cx, cy - 1)):
                    if 0 <= nx < w and 0 <= ny < h and land[ny][nx]:
                        land[ny][nx] = False
                        queue.append((nx, ny))
            sizes.append(size)
    return len(sizes), max(sizes)


def dice_pool_odds():
    dist = {0: Fraction(1)}
    for _ in range(5):
        nxt = defaultdict(Fraction)
        for total, p in dist.items():
            for face in range(1, 7):
                nxt[total + face] += p * Fraction(1, 6)
        dist = nxt
    return sum(p for t, p in dist.items() if t >= 20)


def inventory_stacking():
    stacks = []
    drops = ["potion", "arrow", "gem", "arrow", "potion", "arrow"]
    for item in drops * 2:
        for s in stacks:
            if s[0] == item and s[1] < 3:
                s[1] += 1
                break
        else:
            stacks.append([item, 1])
    return stacks


def procedural_heightmap():
    n = 129
    rng = random.Random(5)
    h = [[0.0] * n for _ in range(n)]
    for y in (0, n - 1):
        for x in (0, n - 1):
            h[y][x] = rng.random()
    step, amp = n - 1, 1.0
    while step > 1:
        half = step // 2
        for y in range(half, n, step):
            for x in range(half, n, step):
                avg = (h[y - half][x - half] + h[y - half][x + half] + h[y + half][x - half] + h[y + half][x + half]) / 4
                h[y][x] = avg + rng.uniform(-amp, amp)
        for y in range(0, n, half):
            for x in range((y + half) % step, n, step):
                near = [h[y + dy][x + dx] for dy, dx in ((-half, 0), (half, 0), (0, -half), (0, half))
                        if 0 <= y + dy < n and 0 <= x + dx < n]
                h[y][x] = sum(near) / len(near) + rng.uniform(-amp, amp)
        step, amp = half, amp * 0.55
    return round(max(map(max, h)), 4), round(min(map(min, h)), 4)


# ---------------------------------------------------------------- teacher

def gcd_by_euclid():
    a, b = 1071, 462
    while b:
        a, b = b, a % b
    return a


def is_palindrome_phrase():
    phrase = "A man, a plan, a canal: Panama"
    letters = [c.lower() for c in phrase if c.isalpha()]
    return letters == letters[::-1]


def sieve_with_bytearray():
    n = 6_000_000
    flags = bytearray([1]) * (n + 1)
    flags[0:2] = b"\0\0"
    for p in range(2, math.isqrt(n) + 1):
        if flags[p]:
            flags[p * p::p] = bytes(len(range(p * p, n + 1, p)))
    return sum(flags)


def _hanoi(n, src, dst, via):
    if n:
        yield from _hanoi(n - 1, src, via, dst)
        yield src, dst
        yield from _hanoi(n - 1, via, dst, src)


def hanoi_moves():
    pegs = {"A": list(range(12, 0, -1)), "B": [], "C": []}
    count = 0
    for src, dst in _hanoi(12, "A", "C", "B"):
        pegs[dst].append(pegs[src].pop())
        count += 1
    return count, pegs["C"][-1]


def bubble_sort_class_marks():
    marks = [(i * 73 + 19) % 211 for i in range(200)]
    n = len(marks)
    swaps = 0
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if marks[j] > marks[j + 1]:
                marks[j], marks[j + 1] = marks[j + 1], marks[j]
                swaps += 1
                swapped = True
        if not swapped:
            break
    return swaps, marks[:3]


class _Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def _merge_nodes(a, b):
    head = tail = _Node(None)
    while a and b:
        if a.value <= b.value:
            tail.next, a = a, a.next
        else:
            tail.next, b = b, b.next
        tail = tail.next
    tail.next = a or b
    return head.next


def _sort_nodes(head):
    if head is None or head.next is None:
        return head
    slow, fast = head, head.next
    while fast and fast.next:
        slow, fast = slow.next, fast.next.next
    mid, slow.next = slow.next, None
    return _merge_nodes(_sort_nodes(head), _sort_nodes(mid))


def linked_list_merge_sort():
    head = None
    x = 12345
    for _ in range(5000):
        x = (x * 1103515245 + 12345) % 2147483648
        head = _Node(x % 10000, head)
    head = _sort_nodes(head)
    out = []
    while head:
        out.append(head.value)
        head = head.next
    return out[0], out[len(out) // 2], out[-1]


def pascal_triangle_text():
    rows = [[1]]
    while len(rows) < 18:
        last = rows[-1]
        rows.append([1, *(a + b for a, b in zip(last, last[1:])), 1])
    lines = [" ".join(str(v) for v in r) for r in rows]
    width = len(lines[-1])
    return "\n".join(line.center(width).rstrip() for line in lines)


def big_factorial_digits():
    product = 1
    for k in range(2, 1401):
        product *= k
    return sum(map(int, str(product))), product.bit_length()


def roman_numeral_table():
    table = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
             (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    longest = ""
    for number in range(1, 2025):
        n, text = number, ""
        for value, sym in table:
            while n >= value:
                text += sym
                n -= value
        if len(text) > len(longest):
            longest = text
    return longest


class _Expr:
    def __init__(self, text):
        self.tokens = re.findall(r"\d+\.?\d*|[-+*/()^]", text)
        self.i = 0

    def peek(self):
        return self.tokens[self.i] if self.i < len(self.tokens) else None

    def take(self):
        tok = self.tokens[self.i]
        self.i += 1
        return tok

    def expr(self):
        v = self.term()
        while self.peek() in ("+", "-"):
            v = v + self.term() if self.take() == "+" else v - self.term()
        return v

    def term(self):
        v = self.factor()
        while self.peek() in ("*", "/"):
            v = v * self.factor() if self.take() == "*" else v / self.factor()
        return v

    def factor(self):
        base = self.atom()
        if self.peek() == "^":
            self.take()
            return base ** self.factor()
        return base

    def atom(self):
        tok = self.take()
        if tok == "(":
            v = self.expr()
            self.take()
            return v
        if tok == "-":
            return -self.atom()
        return float(tok)


def calculator_expressions():
    samples = ["1 + 2 * 3", "(4 + 6) / (1 + 1)", "2 ^ 3 ^ 2 - 12", "-(3.5 * 2) + 10", "((1+2)*(3+4)-5)/8"]
    return [_Expr(s).expr() for s in samples]


def magic_square_search():
    found = []
    for p in itertools.permutations(range(1, 10)):
        a, b, c, d, e, f, g, h, i = p
        if a + b + c == 15 and d + e + f == 15 and a + d + g == 15 and b + e + h == 15 \
                and a + e + i == 15 and c + e + g == 15:
            found.append(p)
    return len(found), found[0]


def simpson_integration():
    def f(x):
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    a, b, n = -4.0, 4.0, 2000
    h = (b - a) / n
    total = f(a) + f(b)
    for k in range(1, n):
        total += f(a + k * h) * (4 if k % 2 else 2)
    return total * h / 3


# ---------------------------------------------------- competitive programmer

def lcs_of_generated_strings():
    s = "".join("ACGT"[(i * i + 3 * i) % 11 % 4] for i in range(700))
    t = "".join("ACGT"[(i * 5 + i // 7) % 13 % 4] for i in range(650))
    n, m = len(s), len(t)
    dp = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n):
        for j in range(m):
            if s[i] == t[j]:
                dp[i + 1][j + 1] = dp[i][j] + 1
            else:
                dp[i + 1][j + 1] = max(dp[i][j + 1], dp[i + 1][j])
    return dp[n][m]


def kruskal_mst_cost():
    rng = random.Random(1234)
    n, m = 8000, 30000
    edges = sorted((rng.randrange(1, 10**6), rng.randrange(n), rng.randrange(n)) for _ in range(m))
    parent = list(range(n))
    rank = [0] * n

    def find(v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    cost = used = 0
    for w, a, b in edges:
        ra, rb = find(a), find(b)
        if ra == rb:
            continue
        if rank[ra] < rank[rb]:
            ra, rb = rb, ra
        parent[rb] = ra
        rank[ra] += rank[ra] == rank[rb]
        cost += w
        used += 1
    return cost, used


def segment_tree_range_max():
    size = 1 << 12
    tree = [0] * (2 * size)
    for i in range(size):
        tree[size + i] = (i * 48271) % 65537
    for i in range(size - 1, 0, -1):
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
    acc = 0
    for q in range(4000):
        lo, hi = sorted(((q * 911) % size, (q * 353 + 77) % size))
        lo += size
        hi += size + 1
        best = 0
        while lo < hi:
            if lo & 1:
                best = max(best, tree[lo])
                lo += 1
            if hi & 1:
                hi -= 1
                best = max(best, tree[hi])
            lo >>= 1
            hi >>= 1
        acc ^= best
    return acc


def queens_bitmask():
    full = (1 << 9) - 1

    def place(cols, d1, d2):
        if cols == full:
            return 1
        total = 0
        free = full & ~(cols | d1 | d2)
        while free:
            bit = free & -free
            free ^= bit
            total += place(cols | bit, (d1 | bit) << 1, (d2 | bit) >> 1)
        return total

    return place(0, 0, 0)


def coin_change_ways():
    coins = (200, 100, 50, 20, 10, 5, 2, 1)

    @functools.lru_cache(maxsize=None)
    def ways(amount, k):
        if amount == 0:
            return 1
        if amount < 0 or k == len(coins):
            return 0
        return ways(amount - coins[k], k) + ways(amount, k + 1)

    return ways(350, 0)


def _matmul_mod(a, b, mod):
    cols = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, col)) % mod for col in cols] for row in a]


def tribonacci_matrix_power():
    mod = 998244353
    base = [[1, 1, 1], [1, 0, 0], [0, 1, 0]]
    result = [[int(i == j) for j in range(3)] for i in range(3)]
    n = 10 ** 15
    while n:
        if n & 1:
            result = _matmul_mod(result, base, mod)
        base = _matmul_mod(base, base, mod)
        n >>= 1
    return result[0][2]


def miller_rabin_primes():
    def probable_prime(n):
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

    return [n for n in range(10**15, 10**15 + 600) if probable_prime(n)]


def tsp_held_karp():
    n = 13
    pts = [((i * 37) % 101, (i * 59) % 97) for i in range(n)]
    dist = [[math.hypot(a[0] - b[0], a[1] - b[1]) for b in pts] for a in pts]
    size = 1 << (n - 1)
    inf = float("inf")
    dp = [[inf] * (n - 1) for _ in range(size)]
    for j in range(n - 1):
        dp[1 << j][j] = dist[0][j + 1]
    for mask in range(size):
        row = dp[mask]
        for j in range(n - 1):
            cur = row[j]
            if cur == inf:
                continue
            for k in range(n - 1):
                if mask >> k & 1:
                    continue
                cand = cur + dist[j + 1][k + 1]
                nm = mask | 1 << k
                if cand < dp[nm][k]:
                    dp[nm][k] = cand
    return round(min(dp[-1][j] + dist[j + 1][0] for j in range(n - 1)), 4)


def subset_sum_bitset():
    rng = random.Random(6)
    reach = 1
    for _ in range(400):
        reach |= reach << rng.randrange(100, 2500)
    return bin(reach).count("1")


class _Trie:
    def __init__(self):
        self.kids = {}
        self.count = 0

    def insert(self, word):
        node = self
        for ch in word:
            node = node.kids.setdefault(ch, None) or node._grow(ch)
            node.count += 1

    def _grow(self, ch):
        child = self.kids[ch] = _Trie()
        return child


def trie_unique_prefixes():
    rng = random.Random(42)
    words = {"".join(rng.choices(string.ascii_lowercase, k=9)) for _ in range(42000)}
    root = _Trie()
    for w in sorted(words):
        root.insert(w)
    total = 0
    for w in words:
        node = root
        for depth, ch in enumerate(w, 1):
            node = node.kids[ch]
            if node.count == 1:
                total += depth
                break
    return len(words), total


def convex_hull_area():
    pts = sorted({((i * 7907) % 1009, (i * i * 31 + 5 * i) % 997) for i in range(1500)})

    def half(points):
        hull = []
        for p in points:
            while len(hull) >= 2 and (hull[-1][0] - hull[-2][0]) * (p[1] - hull[-2][1]) - \
                    (hull[-1][1] - hull[-2][1]) * (p[0] - hull[-2][0]) <= 0:
                hull.pop()
            hull.append(p)
        return hull[:-1]

    hull = half(pts) + half(reversed(pts))
    area2 = sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(hull, hull[1:] + hull[:1]))
    return len(hull), abs(area2) / 2


def popcount_parity_of_word():
    x = 0xDEADBEEF
    ones = bin(x).count("1")
    x ^= x >> 16
    x ^= x >> 8
    x ^= x >> 4
    return ones, (0x6996 >> (x & 15)) & 1


def longest_collatz_chain():
    length = {1: 1}
    best = (1, 1)
    for start in range(2, 620_000):
        path, n = [], start
        while n not in length:
            path.append(n)
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = length[n]
        for v in reversed(path):
            steps += 1
            length[v] = steps
        if length[start] > best[0]:
            best = (length[start], start)
    return best


def packed_telemetry_roundtrip():
    record = struct.Struct("<IHhf")
    blob = b"".join(record.pack(i, i * 7 % 65536, i % 400 - 200, i / 8) for i in range(90_000))
    packed = zlib.compress(blob, 6)
    total = 0
    for ident, flags, temp, _ in record.iter_unpack(zlib.decompress(packed)):
        if flags & 0b101 == 0b101:
            total += temp + (ident & 3)
    return len(packed) < len(blob), zlib.crc32(blob), total


def meeting_room_notice():
    meetings = sorted((9 * 60 + (i * 35) % 480, 20 + (i * 13) % 50, "team %s" % "ABCDEF"[i % 6]) for i in range(36))
    free, busy, assigned, opened = [], [], [], 0
    for start, length, who in meetings:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            room = heapq.heappop(free)
        else:
            opened += 1
            room = opened
        heapq.heappush(busy, (start + length, room))
        assigned.append(f"{who} has room {room} from {start // 60:02d}:{start % 60:02d}")
    weekday = calendar.day_name[date(2024, 5, 14).weekday()]
    return textwrap.fill(f"{weekday}: " + ", ".join(assigned) + ".", width=66)
