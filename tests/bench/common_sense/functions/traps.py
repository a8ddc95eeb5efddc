"""Large numbers that cost nothing: never iterated, left early, or unused."""

import itertools
import time

TIMEOUT = 3600
MAX_ITEMS = 10**9
RETRIES = 1_000_000
POLL_INTERVAL = 30


def huge_range():
    return range(10**12)


def length_of_range():
    return len(range(0, 10**15, 7))


def member_of_range():
    return 10**11 in range(0, 10**12, 2)


def lazy_generator():
    return (n * n for n in range(10**9))


def lazy_map():
    return map(str, range(10**8))


def first_match():
    for n in range(10**9):
        if n > 10:
            return n
    return None


def next_of_generator():
    return next(n for n in range(10**9) if n % 7 == 3)


def any_stops():
    return any(n > 5 for n in range(10**8))


def break_at_once():
    for i in range(MAX_ITEMS):
        if i == 3:
            break
    return i


def unused_constants():
    return MAX_ITEMS - RETRIES > TIMEOUT


def never_entered():
    for _ in range(0):
        time.sleep(10)
    return "done"


def returns_before():
    return 1
    for i in range(10**8):
        print(i)


def dead_branch():
    if False:
        return sum(range(10**8))
    return 0


def slice_of_endless():
    return list(itertools.islice(itertools.count(10**6), 5))


def big_number_in_a_condition(value=5):
    if value > 10**18:
        return "astronomical"
    return "ordinary"


def function_defined_inside():
    def slow():
        time.sleep(60)
        return sum(range(10**9))

    return slow


def default_not_used(items=(), limit=10**9):
    taken = []
    for item in items:
        if len(taken) >= limit:
            break
        taken.append(item)
    return taken


def timedelta_math():
    return TIMEOUT // POLL_INTERVAL


def sum_formula():
    n = 10**9
    return n * (n + 1) // 2


def short_circuit():
    return True or sum(range(10**9))


def empty_product():
    return [(a, b) for a in [] for b in range(10**9)]


def slow_callback():
    return lambda: [x for x in range(10**8)]


def sleepy_name(sleep=0.0, timeout=300):
    return f"sleep={sleep}, timeout={timeout}"


def string_with_code():
    return "while True: time.sleep(1000)"
