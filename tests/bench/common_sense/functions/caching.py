"""Caches make expensive recursions cheap."""

import functools
from functools import cache, lru_cache

_memo = {}


@cache
def cached_fib(n):
    return n if n < 2 else cached_fib(n - 1) + cached_fib(n - 2)


def cached_fib_of_two_hundred():
    cached_fib.cache_clear()
    return cached_fib(200)


@lru_cache(maxsize=None)
def grid_paths(rows, columns):
    if rows == 0 or columns == 0:
        return 1
    return grid_paths(rows - 1, columns) + grid_paths(rows, columns - 1)


def paths_through_a_grid():
    grid_paths.cache_clear()
    return grid_paths(60, 60)


def fib_with_dict(n, memo):
    if n in memo:
        return memo[n]
    if n < 2:
        return n
    memo[n] = fib_with_dict(n - 1, memo) + fib_with_dict(n - 2, memo)
    return memo[n]


def three_hundredth():
    return fib_with_dict(300, {})


def stairs():
    @functools.lru_cache(None)
    def ways(step):
        if step == 0:
            return 1
        if step < 0:
            return 0
        return ways(step - 1) + ways(step - 2) + ways(step - 3)

    return ways(400)


def fib_bottom_up():
    a, b = 0, 1
    for _ in range(1000):
        a, b = b, a + b
    return a


def coin_change():
    coins = [1, 2, 5, 10, 20, 50, 100, 200]
    target = 10_000
    ways = [1] + [0] * target
    for coin in coins:
        for amount in range(coin, target + 1):
            ways[amount] += ways[amount - coin]
    return ways[target]
