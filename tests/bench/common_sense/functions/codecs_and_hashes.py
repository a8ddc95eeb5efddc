"""The standard library's json, re, hashlib, zlib, base64, copy, pickle and csv on data that the text fixes."""

import base64
import copy
import csv
import hashlib
import io
import json
import pickle
import re
import struct
import zlib
from datetime import date, datetime, timedelta
from decimal import Decimal, getcontext
from fractions import Fraction


def hash_a_megabyte():
    return hashlib.sha256(b"x" * 1_000_000).hexdigest()


def hash_hundred_megabytes():
    return hashlib.md5(b"\0" * 100_000_000).hexdigest()


def stretch_key():
    return hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 200_000)


def hash_chain():
    digest = b""
    for _ in range(100_000):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def dump_records():
    records = [{"id": i, "name": f"item {i}", "price": i / 7} for i in range(50_000)]
    return json.dumps(records)


def json_round_trip():
    data = json.dumps(list(range(200_000)))
    return json.loads(data)


def compress_zeros():
    return zlib.compress(bytes(20_000_000))


def compress_text():
    return zlib.compress(b"the quick brown fox jumps over the lazy dog" * 50_000, 9)


def deep_copy_matrix():
    matrix = [[0] * 200 for _ in range(200)]
    return copy.deepcopy(matrix)


def pickle_numbers():
    return pickle.loads(pickle.dumps(list(range(500_000))))


def encode_base64():
    return base64.b64encode(b"\xff" * 5_000_000)


def compile_in_loop():
    found = 0
    for i in range(2_000):
        pattern = re.compile(r"item-%d-(\w+)" % i)
        if pattern.match("item-7-seven"):
            found += 1
    return found


def find_numbers():
    text = "order 66, section 9, row 1138; " * 20_000
    return re.findall(r"\d+", text)


def substitute_spaces():
    return re.sub(r"\s+", " ", "a   b \t c\n" * 100_000)


def catastrophic_pattern():
    return re.match(r"(a+)+$", "a" * 22 + "b")


def write_csv():
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for i in range(50_000):
        writer.writerow([i, f"name {i}", i * 1.5])
    return buffer.getvalue()


def days_of_century():
    day = date(2000, 1, 1)
    weekdays = 0
    for _ in range(36_525):
        if day.weekday() < 5:
            weekdays += 1
        day += timedelta(days=1)
    return weekdays


def parse_dates():
    return [datetime.strptime(f"2024-01-{d:02d}", "%Y-%m-%d") for d in range(1, 29)]


def harmonic_fraction():
    total = Fraction(0)
    for n in range(1, 500):
        total += Fraction(1, n)
    return total


def decimal_root():
    getcontext().prec = 1000
    return Decimal(2).sqrt()


def pack_points():
    return b"".join(struct.pack("<ff", i, i * 2) for i in range(100_000))
