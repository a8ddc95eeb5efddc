"""Sorting, heaps and searching."""

import bisect
import heapq
import random


def sort_shuffled_million():
    random.seed(7)
    numbers = [random.random() for _ in range(1_000_000)]
    return sorted(numbers)


def sort_reversed():
    numbers = list(range(500_000, 0, -1))
    numbers.sort()
    return numbers


def sort_by_key():
    words = [str((i * 7919) % 100_003) for i in range(100_000)]
    return sorted(words, key=len)


def sort_in_every_round():
    values = [(i * 7919) % 1000 for i in range(1000)]
    total = 0
    for _ in range(1000):
        total += sorted(values)[0]
    return total


def bubble_sort():
    values = [(i * 337) % 500 for i in range(500)]
    n = len(values)
    for i in range(n):
        for j in range(n - i - 1):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return values


def selection_sort_default(size=400):
    values = [(i * 211) % size for i in range(size)]
    for i in range(size):
        smallest = i
        for j in range(i + 1, size):
            if values[j] < values[smallest]:
                smallest = j
        values[i], values[smallest] = values[smallest], values[i]
    return values


def median_by_heap():
    heap = []
    for i in range(100_000):
        heapq.heappush(heap, (i * 7919) % 100_003)
    for _ in range(50_000):
        heapq.heappop(heap)
    return heap[0]


def top_ten():
    return heapq.nlargest(10, ((i * 7919) % 1_000_003 for i in range(500_000)))


def many_binary_searches():
    table = list(range(0, 1_000_000, 3))
    found = 0
    for i in range(100_000):
        position = bisect.bisect_left(table, i)
        if position < len(table) and table[position] == i:
            found += 1
    return found


def insert_in_order():
    ordered = []
    for i in range(20_000):
        bisect.insort(ordered, (i * 7919) % 20_011)
    return ordered


def smallest_and_largest():
    data = [(i * 31) % 10_007 for i in range(300_000)]
    return min(data), max(data), sum(data) / len(data)


def shuffle_and_sample():
    deck = list(range(200_000))
    random.shuffle(deck)
    return random.sample(deck, 1000)


def insert_at_front():
    queue = []
    for i in range(30_000):
        queue.insert(0, i)
    return queue
