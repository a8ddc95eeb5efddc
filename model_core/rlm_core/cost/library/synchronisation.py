"""Rules for what waits for time, threads, pools, queues and event loops."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_core.types import WaitKind

from ..domain.values import NONE, UNKNOWN, Call, Value
from .rules import Rule, argument
from .waiting import (
    CALL_SECONDS,
    NUMBER,
    PROCESS_SECONDS,
    THREAD_WAIT,
    WaitingType,
    constructors,
    costs,
    first_argument,
    instance,
    is_given,
    methods_of,
    says_no,
    seconds_of,
    serves,
    table,
    time_limit,
    timed,
    waits,
)

_TIMER_SECONDS = 1e-5  # of an event loop, with the switch to another task
_LATE_SECONDS = 6e-5
_THREAD_SECONDS = 5e-5
_POOL_BYTES = 2e4


def _sleep(call: Call) -> Value:
    seconds = seconds_of(argument(call, 0, "secs", "seconds", "delay"))
    call.spend(_TIMER_SECONDS)
    if seconds is None or seconds.terms:
        call.wait(WaitKind.TIME, seconds)
    return NONE


def _blocking_sleep(call: Call) -> Value:
    """The system wakes a thread up a little late."""
    call.spend(_LATE_SECONDS)
    return _sleep(call)


def _event_wait(call: Call) -> Value:
    """A wait for an event with a timeout is the usual interruptible sleep, so the likely time is the whole timeout."""
    call.spend(CALL_SECONDS)
    timeout = argument(call, 0, "timeout")
    bound = time_limit(timeout) if is_given(timeout) else None
    if not says_no(timeout):
        call.wait(WaitKind.THREAD if bound is None else WaitKind.TIME, bound)
    return Value("bool")


def _condition_wait_for(call: Call) -> Value:
    call.spend(CALL_SECONDS)
    timeout = argument(call, 1, "timeout")
    call.wait(WaitKind.THREAD, time_limit(timeout) if is_given(timeout) else None)
    return Value("bool")


def _queue_put(call: Call) -> Value:
    """Only a queue with a largest size blocks; its constructor leaves that size in the value."""
    call.spend(CALL_SECONDS)
    queue = call.receiver
    bounded = queue is not None and queue.payload == "bounded"
    if bounded and not says_no(argument(call, 1, "block")):
        call.wait(WaitKind.THREAD)
    return NONE


def _queue(name: str) -> Rule:
    def rule(call: Call) -> Value:
        call.spend(2 * CALL_SECONDS)
        size = argument(call, 0, "maxsize")
        return Value("object", name=name, payload="bounded" if is_given(size) and not says_no(size) else None)

    return rule


def _executor(name: str, seconds: float) -> Rule:
    """A pool; its ``number`` is that of its workers where the text says it."""

    def rule(call: Call) -> Value:
        call.spend(seconds)
        call.allocate(_POOL_BYTES)
        return Value("object", name=name, number=argument(call, 0, "max_workers").number)

    return rule


def _executor_map(kind: WaitKind) -> Rule:
    """The processor time of the function is counted here: threads share one interpreter lock."""

    def rule(call: Call) -> Value:
        function, items = argument(call, 0, "fn", "func"), argument(call, 1, "iterable")
        times = call.consume(items)
        call.spend(times.times(2e-5))
        workers = call.receiver.number if call.receiver is not None else None
        result = call.in_pool(function, times, [items.item or UNKNOWN], workers)
        call.wait(kind)
        return Value("iterator", size=times, item=result)

    return rule


def _submit(call: Call) -> Value:
    """A thread runs the function; leaving the pool waits for it."""
    call.spend(2e-5)
    call.start(argument(call, 0, "fn"), call.args[1:])
    return instance("concurrent.futures.Future")


_LOCK: Mapping[str, Rule] = {
    "acquire": timed(1, Value("bool"), flag="blocking"),
    "release": costs(5e-8, NONE),
    "locked": costs(5e-8, Value("bool")),
}
_THREAD_METHODS: Mapping[str, Rule] = {
    "start": costs(_THREAD_SECONDS, NONE),
    "is_alive": costs(CALL_SECONDS, Value("bool")),
    "join": timed(0, NONE),
}
_PROCESS_METHODS: Mapping[str, Rule] = {
    "start": costs(2 * PROCESS_SECONDS, NONE),
    "is_alive": costs(2 * CALL_SECONDS, Value("bool")),
    "terminate": costs(5 * CALL_SECONDS, NONE),
    "kill": costs(5 * CALL_SECONDS, NONE),
    "join": timed(0, NONE, WaitKind.PROCESS),
}
_QUEUE_METHODS: Mapping[str, Rule] = {
    "get": timed(1, UNKNOWN),
    "put": _queue_put,
    "join": waits(WaitKind.THREAD, NONE),
    "get_nowait": costs(CALL_SECONDS),
    "put_nowait": costs(CALL_SECONDS, NONE),
    "task_done": costs(CALL_SECONDS, NONE),
    "empty": costs(CALL_SECONDS, Value("bool")),
    "full": costs(CALL_SECONDS, Value("bool")),
    "qsize": costs(CALL_SECONDS, NUMBER),
}
_EVENT_METHODS: Mapping[str, Rule] = {
    "wait": _event_wait,
    "set": costs(CALL_SECONDS, NONE),
    "clear": costs(CALL_SECONDS, NONE),
    "is_set": costs(5e-8, Value("bool")),
}
_CONDITION_METHODS: Mapping[str, Rule] = {
    **_LOCK,
    "wait": _event_wait,
    "wait_for": _condition_wait_for,
    "notify": costs(CALL_SECONDS, NONE),
    "notify_all": costs(CALL_SECONDS, NONE),
}
_EXECUTORS = {
    "concurrent.futures.ThreadPoolExecutor": WaitKind.THREAD,
    "concurrent.futures.ProcessPoolExecutor": WaitKind.PROCESS,
}
_POOL_METHODS: Mapping[str, Rule] = {
    **table(WaitKind.PROCESS, "map starmap imap imap_unordered apply join"),
    "apply_async": costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "map_async": costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "starmap_async": costs(5e-5, instance("multiprocessing.pool.AsyncResult")),
    "close": costs(CALL_SECONDS, NONE),
    "terminate": costs(1e-4, NONE),
}
_LOOP_METHODS: Mapping[str, Rule] = {
    "run_forever": serves(WaitKind.THREAD),
    "run_until_complete": first_argument,
}

_TYPES: tuple[WaitingType, ...] = (
    ("threading.Timer", "", 8e-6, _THREAD_METHODS),
    ("threading.Event", "", 2e-6, _EVENT_METHODS),
    ("threading.Condition", "multiprocessing.Condition", 2e-6, _CONDITION_METHODS),
    (
        "threading.Lock",
        "_thread.allocate_lock threading.Semaphore threading.BoundedSemaphore multiprocessing.Lock "
        "multiprocessing.Semaphore",
        2e-7,
        _LOCK,
    ),
    # A lock that its owner may acquire again only guards a critical section, as in `with lock:`.
    ("threading.RLock", "multiprocessing.RLock", 2e-7, {**_LOCK, "acquire": costs(1e-7, Value("bool"))}),
    ("threading.Barrier", "multiprocessing.Barrier", 5e-6, {"wait": timed(0, NUMBER)}),
    ("multiprocessing.Event", "", 2e-5, _EVENT_METHODS),
    (
        "multiprocessing.Process",
        "multiprocessing.context.Process multiprocessing.process.BaseProcess",
        1e-5,
        _PROCESS_METHODS,
    ),
    ("multiprocessing.pool.AsyncResult", "", 0.0, table(WaitKind.PROCESS, "get wait")),
    ("concurrent.futures.Future", "", 5e-6, table(WaitKind.THREAD, "result exception")),
    ("asyncio.Event", "trio.Event anyio.Event", 1e-6, {**_EVENT_METHODS, "wait": THREAD_WAIT}),
    (
        "asyncio.Lock",
        "asyncio.Semaphore asyncio.BoundedSemaphore",
        1e-6,
        {"acquire": THREAD_WAIT, "release": costs(2e-7, NONE)},
    ),
    ("asyncio.Condition", "", 1e-6, {"wait": THREAD_WAIT, "wait_for": THREAD_WAIT}),
    (
        "asyncio.AbstractEventLoop",
        "asyncio.new_event_loop asyncio.get_event_loop asyncio.get_running_loop",
        1e-5,
        _LOOP_METHODS,
    ),
    ("sched.scheduler", "", 1e-6, {"run": waits(WaitKind.TIME)}),
)
_QUEUES = (
    "queue.Queue",
    "queue.LifoQueue",
    "queue.PriorityQueue",
    "queue.SimpleQueue",
    "multiprocessing.Queue",
    "multiprocessing.JoinableQueue",
)

FUNCTIONS: dict[str, Rule] = {
    **constructors(_TYPES),
    "time.sleep": _blocking_sleep,
    **dict.fromkeys(("asyncio.sleep", "trio.sleep", "anyio.sleep", "gevent.sleep", "eventlet.sleep"), _sleep),
    "asyncio.wait_for": first_argument,
    "asyncio.wait": THREAD_WAIT,
    "asyncio.gather": THREAD_WAIT,
    "asyncio.to_thread": THREAD_WAIT,
    "concurrent.futures.wait": THREAD_WAIT,
    "concurrent.futures.as_completed": THREAD_WAIT,
    **{name: _queue(name) for name in (*_QUEUES, "asyncio.Queue")},
    "multiprocessing.pool.ThreadPool": costs(2e-3, instance("multiprocessing.pool.ThreadPool")),
    "concurrent.futures.ThreadPoolExecutor": _executor("concurrent.futures.ThreadPoolExecutor", 2e-5),
    "concurrent.futures.ProcessPoolExecutor": _executor("concurrent.futures.ProcessPoolExecutor", 1e-4),
    "multiprocessing.Pool": costs(10 * PROCESS_SECONDS, instance("multiprocessing.Pool")),
}

METHODS: dict[tuple[str, str], Rule] = {
    **methods_of(_TYPES),
    ("concurrent.futures.ThreadPoolExecutor", "submit"): _submit,
    ("concurrent.futures.ProcessPoolExecutor", "submit"): costs(2e-5, instance("concurrent.futures.Future")),
    **{(name, "map"): _executor_map(kind) for name, kind in _EXECUTORS.items()},
    **{(name, "shutdown"): waits(kind, NONE) for name, kind in _EXECUTORS.items()},
    **{
        (name, method): rule
        for name in ("multiprocessing.Pool", "multiprocessing.pool.ThreadPool")
        for method, rule in _POOL_METHODS.items()
    },
    **{(name, method): rule for name in _QUEUES for method, rule in _QUEUE_METHODS.items()},
    **{
        ("asyncio.Queue", method): rule
        for method, rule in {**_QUEUE_METHODS, "get": THREAD_WAIT, "join": waits(WaitKind.THREAD, NONE)}.items()
    },
    # Names that mean one thing whatever their receiver is.
    ("", "run_forever"): waits(WaitKind.THREAD, NONE),  # of a loop from elsewhere, which something may stop
    ("", "run_until_complete"): first_argument,
}
