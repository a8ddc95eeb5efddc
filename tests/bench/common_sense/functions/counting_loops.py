"""Loops whose number of rounds is written in the text."""

import math
import random


def sum_to_ten_million():
    return sum(range(10**7))


def add_up():
    total = 0
    for i in range(1_000_000):
        total += i
    return total


def count_evens():
    count = 0
    for number in range(0, 200_000):
        if number % 2 == 0:
            count += 1
    return count


def print_nothing_ten_times():
    for _ in range(10):
        pass


def hundred_rounds(x):
    for _ in range(100):
        x = x * 1.01 + 1
    return x


def nested_grid():
    hits = 0
    for row in range(1000):
        for column in range(1000):
            if row == column:
                hits += 1
    return hits


def triangle_pairs():
    pairs = 0
    for i in range(2000):
        for j in range(i + 1, 2000):
            pairs += i ^ j
    return pairs


def three_nested():
    total = 0
    for a in range(60):
        for b in range(60):
            for c in range(60):
                total += a * b + c
    return total


def triples_with_sum():
    result = []
    for a in range(1, 200):
        for b in range(a, 200):
            c = 200 - a - b
            if c > b and a * a + b * b == c * c:
                result.append((a, b, c))
    return result


def pythagorean_triples(limit=120):
    """All triples below the limit, the slow way."""
    triples = []
    for a in range(1, limit):
        for b in range(a, limit):
            for c in range(b, limit):
                if a * a + b * b == c * c:
                    triples.append((a, b, c))
    return triples


def count_down_by_steps():
    visited = []
    for i in range(300_000, 0, -3):
        visited.append(i)
    return len(visited)


def multiplication_table():
    table = []
    for i in range(1, 13):
        row = []
        for j in range(1, 13):
            row.append(i * j)
        table.append(row)
    return table


def estimate_pi_by_series():
    pi = 0.0
    for k in range(500_000):
        pi += (-1) ** k / (2 * k + 1)
    return 4 * pi


def monte_carlo_pi():
    inside = 0
    samples = 400_000
    for _ in range(samples):
        x = random.random()
        y = random.random()
        if x * x + y * y <= 1.0:
            inside += 1
    return 4 * inside / samples


def distances():
    best = math.inf
    for i in range(50_000):
        d = math.hypot(i - 100, 3 * i - 7)
        if d < best:
            best = d
    return best


def fizzbuzz():
    lines = []
    for i in range(1, 101):
        if i % 15 == 0:
            lines.append("FizzBuzz")
        elif i % 3 == 0:
            lines.append("Fizz")
        elif i % 5 == 0:
            lines.append("Buzz")
        else:
            lines.append(str(i))
    return lines


def sum_of_primes_naive():
    total = 0
    for n in range(2, 3000):
        is_prime = True
        for d in range(2, n):
            if n % d == 0:
                is_prime = False
                break
        if is_prime:
            total += n
    return total


def sieve():
    n = 1_000_000
    flags = [True] * (n + 1)
    flags[0] = flags[1] = False
    for i in range(2, int(n**0.5) + 1):
        if flags[i]:
            for j in range(i * i, n + 1, i):
                flags[j] = False
    return sum(flags)


def matrix_product_lists():
    n = 60
    a = [[i + j for j in range(n)] for i in range(n)]
    b = [[i - j for j in range(n)] for i in range(n)]
    c = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            s = 0
            for k in range(n):
                s += a[i][k] * b[k][j]
            c[i][j] = s
    return c


def powers_of_two_table():
    for exponent in range(0, 64):
        yield_value = 2**exponent
        if yield_value > 10**30:
            return exponent
    return None


def over_a_literal_list():
    total = 0
    for price in [3.5, 4.25, 19.99, 0.5, 7.0, 12.75]:
        total += price * 1.19
    return round(total, 2)


def weekdays_times_hours():
    slots = []
    for day in ("mon", "tue", "wed", "thu", "fri"):
        for hour in range(8, 18):
            slots.append(f"{day} {hour:02d}:00")
    return slots


def billion_rounds():
    n = 0
    for _ in range(10**9):
        n += 1
    return n


def enumerate_letters():
    score = 0
    for position, letter in enumerate("the quick brown fox jumps over the lazy dog"):
        score += position * ord(letter)
    return score
