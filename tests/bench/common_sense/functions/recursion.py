"""Recursive functions, called with arguments that the text fixes."""

import sys

sys.setrecursionlimit(20_000)


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def fib_of_thirty():
    return fib(30)


def small_fib():
    return fib(10)


def fibonacci_with_default(n=25):
    return n if n <= 1 else fibonacci_with_default(n - 1) + fibonacci_with_default(n - 2)


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def factorial_of_five_hundred():
    return factorial(500)


def hanoi(n, source, target, spare):
    if n == 0:
        return 0
    moves = hanoi(n - 1, source, spare, target)
    moves += 1
    moves += hanoi(n - 1, spare, target, source)
    return moves


def towers():
    return hanoi(18, "A", "C", "B")


def power(base, exponent):
    if exponent == 0:
        return 1
    half = power(base, exponent // 2)
    return half * half if exponent % 2 == 0 else half * half * base


def fast_power():
    return power(3, 1000)


def sum_list(values):
    if not values:
        return 0
    return values[0] + sum_list(values[1:])


def sum_recursively():
    return sum_list(list(range(900)))


def binary_search(values, wanted, low, high):
    if low > high:
        return -1
    middle = (low + high) // 2
    if values[middle] == wanted:
        return middle
    if values[middle] < wanted:
        return binary_search(values, wanted, middle + 1, high)
    return binary_search(values, wanted, low, middle - 1)


def merge_sort(values):
    if len(values) <= 1:
        return values
    middle = len(values) // 2
    left = merge_sort(values[:middle])
    right = merge_sort(values[middle:])
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    merged.extend(left[i:])
    merged.extend(right[j:])
    return merged


def sort_fifty_thousand():
    return merge_sort([(i * 7919) % 50_000 for i in range(50_000)])


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def countdown(n=1000):
    if n > 0:
        return countdown(n - 1)
    return "liftoff"


def binary_strings(length):
    if length == 0:
        return [""]
    return [bit + rest for bit in "01" for rest in binary_strings(length - 1)]


def all_twelve_bit_words():
    return binary_strings(12)


def tree_size(depth):
    if depth == 0:
        return 1
    return 1 + tree_size(depth - 1) + tree_size(depth - 1) + tree_size(depth - 1)


def ternary_tree():
    return tree_size(10)


def fib_of_fifty():
    return fib(50)
