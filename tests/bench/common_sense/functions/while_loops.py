"""``while`` with a bound that the text fixes."""


def count_to_million():
    i = 0
    while i < 1_000_000:
        i += 1
    return i


def double_until_huge():
    value = 1
    steps = 0
    while value < 10**100:
        value *= 2
        steps += 1
    return steps


def count_down():
    n = 500_000
    while n > 0:
        n -= 5
    return n


def collatz_of_27():
    n, steps = 27, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def newton_root():
    x = 2.0
    while abs(x * x - 2) > 1e-12:
        x = (x + 2 / x) / 2
    return x


def gcd_by_hand():
    a, b = 1_000_000_007, 998_244_353
    while b:
        a, b = b, a % b
    return a


def drain_stack():
    stack = list(range(250_000))
    total = 0
    while stack:
        total += stack.pop()
    return total


def two_pointers():
    numbers = list(range(200_000))
    left, right = 0, len(numbers) - 1
    while left < right:
        if numbers[left] + numbers[right] > 199_999:
            right -= 1
        else:
            left += 1
    return left


def nested_while():
    i = 0
    hits = 0
    while i < 700:
        j = 0
        while j < i:
            hits += 1
            j += 1
        i += 1
    return hits


def break_after_thousand():
    count = 0
    while True:
        count += 1
        if count >= 1000:
            break
    return count


def fill_buffer():
    buffer = []
    while len(buffer) < 150_000:
        buffer.append(len(buffer) * 2)
    return buffer


def breadth_first_grid():
    size = 120
    frontier = [(0, 0)]
    seen = {(0, 0)}
    while frontier:
        following = []
        for x, y in frontier:
            for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if 0 <= nx < size and 0 <= ny < size and (nx, ny) not in seen:
                    seen.add((nx, ny))
                    following.append((nx, ny))
        frontier = following
    return len(seen)
