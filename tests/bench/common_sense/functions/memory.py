"""Peak memory that the text fixes."""

import array
import copy
import io
from collections import deque

import numpy as np


def million_zeros():
    return [0] * 1_000_000


def zero_bytes():
    return bytes(50_000_000)


def byte_array():
    return bytearray(10**7)


def list_of_integers():
    return list(range(1_000_000))


def large_integers():
    return [10**9 + i for i in range(500_000)]


def list_of_floats():
    return [i * 0.5 for i in range(400_000)]


def list_of_tuples():
    return [(i, i + 1) for i in range(200_000)]


def list_of_lists():
    return [[0] * 1000 for _ in range(1000)]


def shared_rows():
    return [[0] * 1000] * 1000


def long_string():
    return "x" * 30_000_000


def joined_string():
    return "".join("abc" for _ in range(1_000_000))


def dictionary_of_integers():
    return {i: i for i in range(500_000)}


def set_of_integers():
    return set(range(800_000))


def strings_in_a_list():
    return [f"row-{i:08d}" for i in range(200_000)]


def tuple_of_numbers():
    return tuple(range(300_000))


def array_of_doubles():
    return array.array("d", [0.0]) * 2_000_000


def ring_buffer():
    return deque(range(10**6), maxlen=1000)


def copied_list():
    original = list(range(600_000))
    duplicate = original[:]
    return original, duplicate


def deep_copied():
    table = {"rows": [list(range(10)) for _ in range(10_000)]}
    return copy.deepcopy(table)


def temporary_sum():
    return sum([i * i for i in range(700_000)])


def streaming_sum():
    return sum(i * i for i in range(700_000))


def zeros_matrix():
    return np.zeros((3000, 3000))


def zeros_int16():
    return np.zeros(20_000_000, dtype=np.int16)


def float32_ones():
    return np.ones((512, 512, 3), np.float32)


def three_temporaries():
    a = np.ones((1500, 1500))
    return a * 2 + a * 3


def in_place_update():
    a = np.ones((2000, 2000))
    a *= 2
    a += 1
    return a


def broadcast_table():
    return np.arange(2500)[:, None] * np.arange(2500)[None, :]


def astype_copy():
    return np.arange(5_000_000).astype(np.float32)


def identity_matrix():
    return np.eye(1200)


def complex_spectrum():
    return np.fft.fft(np.ones(2**19))


def concatenated():
    part = np.zeros(1_000_000)
    return np.concatenate([part, part, part])


def list_of_arrays():
    return [np.zeros(10_000) for _ in range(300)]


def string_io():
    out = io.StringIO()
    for _ in range(200_000):
        out.write("0123456789")
    return out.getvalue()


def repeated_bytes():
    return b"\x00\xff" * 4_000_000


def objects_with_slots():
    class Point:
        __slots__ = ("x", "y")

        def __init__(self, x, y):
            self.x = x
            self.y = y

    return [Point(i, i) for i in range(100_000)]


class Node:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


def linked_list():
    head = None
    for i in range(100_000):
        head = Node(i, head)
    return head


def dictionaries_in_a_list():
    return [{"id": i, "active": True} for i in range(60_000)]


def small_list():
    return [1, 2, 3]


def prefix_slices():
    text = "a" * 2000
    return [text[:i] for i in range(2000)]


def chunks_of_bytes():
    data = bytes(4_000_000)
    return [data[i : i + 1000] for i in range(0, len(data), 1000)]


def sorted_copy():
    numbers = list(range(900_000, 0, -1))
    return sorted(numbers)


def big_integer():
    return 1 << 80_000_000


def reversed_copy():
    return list(reversed(range(450_000)))


def boolean_grid():
    return np.full((5000, 5000), True)


def random_floats():
    return np.random.rand(1024, 1024)


def deleted_early():
    first = bytearray(30_000_000)
    del first
    second = bytearray(5_000_000)
    return second
