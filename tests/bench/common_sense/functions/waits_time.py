"""Functions that wait for time to pass."""

import asyncio
import random
import threading
import time
from threading import Event
from time import sleep

RETRY_DELAY = 2.5
FRAME = 1 / 60
_stop = threading.Event()


def one_second():
    time.sleep(1)


def half_second():
    sleep(0.5)
    return True


def millisecond():
    time.sleep(0.001)


def ten_times_a_tenth():
    for _ in range(10):
        time.sleep(0.1)


def sleep_constant():
    time.sleep(RETRY_DELAY)
    return "retried"


def wait_a_minute():
    print("waiting")
    time.sleep(60)
    print("done")


def _pause(seconds):
    time.sleep(seconds)


def pause_three():
    _pause(3)


def pause_default(delay=1.5):
    time.sleep(delay)


def compute_then_sleep():
    total = sum(range(100_000))
    time.sleep(0.25)
    return total


def render_frames():
    for frame in range(120):
        time.sleep(FRAME)


async def async_second():
    await asyncio.sleep(1)


async def sequential_sleeps():
    for _ in range(3):
        await asyncio.sleep(0.2)


async def concurrent_sleeps():
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(1), asyncio.sleep(1))


async def fetch_slowly(name, delay):
    await asyncio.sleep(delay)
    return name


async def gather_two():
    return await asyncio.gather(fetch_slowly("a", 0.5), fetch_slowly("b", 2))


def run_event_loop():
    return asyncio.run(fetch_slowly("result", 1.0))


def event_with_timeout():
    Event().wait(timeout=2)


def stop_requested():
    return _stop.wait(5.0)


def exponential_backoff():
    for attempt in range(5):
        time.sleep(2**attempt)


def jitter():
    time.sleep(random.uniform(1, 3))


def sleep_in_finally(value):
    try:
        return int(value)
    finally:
        time.sleep(1)


def throttle(last_call):
    elapsed = time.monotonic() - last_call
    if elapsed < 10:
        time.sleep(10 - elapsed)
    return time.monotonic()


class RateLimiter:
    INTERVAL = 0.2

    def __init__(self):
        self.calls = 0

    def acquire(self):
        time.sleep(self.INTERVAL)
        self.calls += 1

    def burst(self):
        for _ in range(20):
            self.acquire()


def sleep_zero():
    time.sleep(0)


def nested_sleeps():
    for shard in range(4):
        for replica in range(3):
            time.sleep(0.05)
