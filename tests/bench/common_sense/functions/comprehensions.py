"""Comprehensions, generators and the built-in functions that consume them."""

from collections import Counter
from functools import reduce
from itertools import chain, combinations, islice, permutations, product
import operator


def squares():
    return [n * n for n in range(1_000_000)]


def small_squares():
    return [n * n for n in range(10)]


def sum_of_squares():
    return sum(n * n for n in range(2_000_000))


def even_squares():
    return [x**2 for x in range(500_000) if x % 2 == 0]


def grid_points():
    return [(x, y) for x in range(300) for y in range(300)]


def unique_remainders():
    return {i % 1000 for i in range(300_000)}


def square_by_number():
    return {n: n * n for n in range(200_000)}


def any_large():
    return any(n > 10**9 for n in range(1_000_000))


def all_positive():
    return all(n >= 0 for n in range(300_000))


def largest_digit_sum():
    return max(sum(int(d) for d in str(n)) for n in range(20_000))


def strings_of_numbers():
    return list(map(str, range(400_000)))


def odd_numbers():
    return list(filter(lambda n: n % 2, range(250_000)))


def factorial_by_reduce():
    return reduce(operator.mul, range(1, 201))


def dice_rolls():
    return Counter(sum(roll) for roll in product(range(1, 7), repeat=6))


def seating_orders():
    return sum(1 for _ in permutations(range(9)))


def pairs_of_cards():
    deck = [rank + suit for rank in "23456789TJQKA" for suit in "CDHS"]
    return len(list(combinations(deck, 3)))


def flattened():
    rows = [list(range(100)) for _ in range(1000)]
    return list(chain.from_iterable(rows))


def dot_product():
    xs = range(500_000)
    ys = range(500_000, 0, -1)
    return sum(x * y for x, y in zip(xs, ys))


def first_of_an_endless_stream():
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    return list(islice(naturals(), 100_000))


def running_totals():
    def totals(values):
        total = 0
        for value in values:
            total += value
            yield total

    return list(totals(range(150_000)))


def transposed():
    matrix = [[r * 50 + c for c in range(50)] for r in range(50)]
    return [[row[i] for row in matrix] for i in range(50)]
