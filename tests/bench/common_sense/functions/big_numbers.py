"""Integers of many digits."""

import math


def huge_power():
    return 3**1_000_000


def digits_of_power():
    return len(str(7**4_000))


def big_factorial():
    return math.factorial(20_000)


def loop_factorial():
    result = 1
    for i in range(2, 5_001):
        result *= i
    return result


def modular_power():
    return pow(3, 10**18, 10**9 + 7)


def rsa_like():
    return pow(65537, 2**2048 - 1, 2**2048 - 159)


def big_shift():
    return (1 << 10_000_000) - 1


def long_fibonacci():
    a, b = 0, 1
    for _ in range(50_000):
        a, b = b, a + b
    return a


def central_binomial():
    return math.comb(20_000, 10_000)


def gcd_sum():
    total = 0
    for a in range(1, 400):
        for b in range(1, 400):
            total += math.gcd(a, b)
    return total
