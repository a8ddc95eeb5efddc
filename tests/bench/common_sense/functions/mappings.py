"""Dictionaries and sets, membership in lists."""

from collections import Counter, OrderedDict, defaultdict, deque


def build_index():
    index = {}
    for i in range(300_000):
        index[f"user{i}"] = i
    return index


def list_membership():
    allowed = list(range(5_000))
    hits = 0
    for candidate in range(5_000):
        if candidate in allowed:
            hits += 1
    return hits


def set_membership():
    allowed = set(range(5_000))
    hits = 0
    for candidate in range(5_000):
        if candidate in allowed:
            hits += 1
    return hits


def missing_from_list():
    known = [n * 2 for n in range(3_000)]
    return [n for n in range(3_000) if n not in known]


def group_by_remainder():
    groups = defaultdict(list)
    for n in range(250_000):
        groups[n % 97].append(n)
    return groups


def letter_counts():
    return Counter("mississippi river " * 30_000)


def common_elements():
    left = set(range(0, 600_000, 2))
    right = set(range(0, 600_000, 3))
    return left & right


def merge_dicts():
    merged = {}
    for shard in range(100):
        merged |= {f"{shard}-{i}": i for i in range(100)}
    return merged


def invert_mapping():
    mapping = {i: i * 17 for i in range(150_000)}
    return {value: key for key, value in mapping.items()}


def queue_with_list():
    queue = list(range(60_000))
    total = 0
    while queue:
        total += queue.pop(0)
    return total


def queue_with_deque():
    queue = deque(range(60_000))
    total = 0
    while queue:
        total += queue.popleft()
    return total


def remove_duplicates_slowly():
    seen = []
    for i in range(4_000):
        value = (i * 7) % 2_003
        if value not in seen:
            seen.append(value)
    return seen


def remove_duplicates_fast():
    return list(dict.fromkeys((i * 7) % 2_003 for i in range(4_000)))


def two_sum_table():
    numbers = list(range(0, 40_000, 2))
    target = 79_999
    seen = {}
    for index, number in enumerate(numbers):
        if target - number in seen:
            return seen[target - number], index
        seen[number] = index
    return None


def lru_by_hand():
    recent = OrderedDict()
    for i in range(80_000):
        key = (i * 31) % 977
        recent[key] = i
        recent.move_to_end(key)
        if len(recent) > 128:
            recent.popitem(last=False)
    return recent
