"""Loops whose end no counter tells, searches, and recursion that tries all ways."""

import functools
import heapq
from collections import deque


def euclid_over_pairs():
    total = 0
    for a in range(1, 300):
        for b in range(1, 300):
            x, y = a, b
            while y:
                x, y = y, x % y
            total += x
    return total


def multiplicative_persistence():
    longest = 0
    for n in range(10, 5000):
        steps = 0
        while n > 9:
            product = 1
            for digit in str(n):
                product *= int(digit)
            n = product
            steps += 1
        longest = max(longest, steps)
    return longest


def square_roots_by_newton():
    roots = []
    for n in range(2, 2000):
        x = n / 2
        while abs(x * x - n) > 1e-9 * n:
            x = (x + n / x) / 2
        roots.append(x)
    return roots


def random_until_zero():
    state, drawn = 42, 0
    while state % 977 != 0:
        state = (state * 1103515245 + 12345) % 2147483648
        drawn += 1
    return drawn


def longest_collatz():
    best = 0
    for start in range(1, 20_000):
        n, length = start, 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        best = max(best, length)
    return best


def smallest_sum_of_two_cubes():
    n = 1
    while True:
        ways = 0
        for a in range(1, 13):
            for b in range(a, 13):
                if a**3 + b**3 == n:
                    ways += 1
        if ways == 2:
            return n
        n += 1


def binary_searches():
    values = list(range(0, 200_000, 3))
    found = 0
    for target in range(2000):
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) // 2
            if values[middle] < target:
                low = middle + 1
            else:
                high = middle
        found += low < len(values) and values[low] == target
    return found


def flood_fill():
    width, height = 150, 100
    grid = [[0] * width for _ in range(height)]
    stack = [(0, 0)]
    filled = 0
    while stack:
        row, column = stack.pop()
        if 0 <= row < height and 0 <= column < width and grid[row][column] == 0:
            grid[row][column] = 1
            filled += 1
            stack.append((row + 1, column))
            stack.append((row - 1, column))
            stack.append((row, column + 1))
            stack.append((row, column - 1))
    return filled


def distances_on_a_board():
    size = 80
    distance = {(0, 0): 0}
    queue = deque([(0, 0)])
    while queue:
        x, y = queue.popleft()
        for dx, dy in ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)):
            place = (x + dx, y + dy)
            if 0 <= place[0] < size and 0 <= place[1] < size and place not in distance:
                distance[place] = distance[x, y] + 1
                queue.append(place)
    return max(distance.values())


def reachable_in_a_graph():
    graph = {n: [(n * 7 + k) % 20_000 for k in (1, 2, 3)] for n in range(20_000)}
    seen = {0}
    stack = [0]
    while stack:
        node = stack.pop()
        for other in graph[node]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return len(seen)


def shortest_paths():
    graph = {n: [((n * 3 + 1) % 5000, 2), ((n + 1) % 5000, 1), ((n * 5 + 2) % 5000, 4)] for n in range(5000)}
    best = {0: 0}
    heap = [(0, 0)]
    while heap:
        length, node = heapq.heappop(heap)
        if length > best[node]:
            continue
        for other, weight in graph[node]:
            new = length + weight
            if other not in best or new < best[other]:
                best[other] = new
                heapq.heappush(heap, (new, other))
    return sum(best.values())


def queens_on_seven():
    def place(row, columns, left, right):
        if row == 7:
            return 1
        found = 0
        for column in range(7):
            if column not in columns and row + column not in left and row - column not in right:
                found += place(row + 1, columns | {column}, left | {row + column}, right | {row - column})
        return found

    return place(0, frozenset(), frozenset(), frozenset())


def all_subsets_of_fourteen():
    found = []

    def choose(position, chosen):
        if position == 14:
            found.append(list(chosen))
            return
        choose(position + 1, chosen)
        chosen.append(position)
        choose(position + 1, chosen)
        chosen.pop()

    choose(0, [])
    return found


def words_over_three_letters():
    found = []

    def extend(letters):
        if len(letters) == 8:
            found.append("".join(letters))
            return
        for letter in "abc":
            letters.append(letter)
            extend(letters)
            letters.pop()

    extend([])
    return found


def lattice_paths():
    @functools.lru_cache(maxsize=None)
    def paths(row, column):
        if row == 0 or column == 0:
            return 1
        return paths(row - 1, column) + paths(row, column - 1)

    return paths(120, 80)


def walk_along_a_chain():
    following = {n: n + 1 for n in range(50_000)}
    node, steps = 0, 0
    while node in following:
        node = following[node]
        steps += 1
    return steps
