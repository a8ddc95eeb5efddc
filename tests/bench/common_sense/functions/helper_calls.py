"""Small functions whose cost is in helpers that they call with literal arguments."""

import math
from functools import partial


def primes_below(n):
    sieve = bytearray([1]) * n
    sieve[0:2] = b"\0\0"
    for i in range(2, int(math.sqrt(n)) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, n, i)))
    return [i for i, flag in enumerate(sieve) if flag]


def count_primes():
    return len(primes_below(1_000_000))


def few_primes():
    return primes_below(50)


def _spin(rounds):
    x = 0
    for _ in range(rounds):
        x = (x * 1103515245 + 12345) % 2**31
    return x


def spin_long():
    return _spin(2_000_000)


def spin_short():
    return _spin(20)


def spin_keyword():
    return _spin(rounds=300_000)


def spin_twice():
    first = _spin(100_000)
    second = _spin(400_000)
    return first ^ second


def make_grid(width, height, fill=0):
    return [[fill for _ in range(width)] for _ in range(height)]


def count_neighbours(grid, row, column):
    total = 0
    for dr in (-1, 0, 1):
        for dc in (-1, 0, 1):
            if dr == 0 and dc == 0:
                continue
            total += grid[(row + dr) % len(grid)][(column + dc) % len(grid[0])]
    return total


def life_step(grid):
    rows, columns = len(grid), len(grid[0])
    new = make_grid(columns, rows)
    for r in range(rows):
        for c in range(columns):
            n = count_neighbours(grid, r, c)
            new[r][c] = 1 if n == 3 or (grid[r][c] and n == 2) else 0
    return new


def game_of_life():
    grid = make_grid(40, 40)
    for r, c in [(1, 2), (2, 3), (3, 1), (3, 2), (3, 3)]:
        grid[r][c] = 1
    for _ in range(20):
        grid = life_step(grid)
    return sum(map(sum, grid))


def compute(n, repeat=3):
    best = 0
    for _ in range(repeat):
        best = max(best, sum(i * i for i in range(n)))
    return best


def compute_small():
    return compute(10)


def compute_large():
    return compute(200_000, repeat=5)


def integrate(f, a, b, steps=10_000):
    width = (b - a) / steps
    return sum(f(a + (i + 0.5) * width) for i in range(steps)) * width


def area_under_sine():
    return integrate(math.sin, 0.0, math.pi)


def area_fine():
    return integrate(lambda x: x * x, 0, 1, steps=1_000_000)


hundred_thousand = partial(_spin, 100_000)


def layer_three(n):
    return [i % 7 for i in range(n)]


def layer_two(n):
    return sum(layer_three(n))


def layer_one():
    return layer_two(500_000) + 1


def transform(value):
    return (value * 3 + 1) // 2


def transform_all():
    return [transform(v) for v in range(100_000)]


def call_per_item():
    total = 0
    for i in range(1_000):
        total += layer_two(100)
    return total
