"""Functions that wait for other threads: locks, joins, queues, conditions."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import Queue
from threading import Condition, Lock, Semaphore, Thread

_jobs = Queue()
_ready = threading.Event()
_turn = threading.Condition()
_slots = Semaphore(3)


def next_job():
    return _jobs.get()


def wait_until_ready():
    _ready.wait()


def join_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_in_thread(function):
    worker = Thread(target=function)
    worker.start()
    worker.join()


def drain(out):
    inbox = queue.Queue()
    while True:
        item = inbox.get()
        if item is None:
            break
        out.append(item)


def wait_for_turn():
    with _turn:
        _turn.wait()


def results_of(executor, function, values):
    futures = [executor.submit(function, value) for value in values]
    return [future.result() for future in as_completed(futures)]


def queue_finished():
    work = Queue()
    work.put("task")
    work.join()


def at_the_barrier():
    barrier = threading.Barrier(2)
    barrier.wait()
    return "go"


class Worker(Thread):
    def __init__(self):
        super().__init__()
        self.tasks = Queue()

    def take(self):
        return self.tasks.get()

    def finish(self):
        self.tasks.put(None)
        self.join()


def condition_loop(items):
    ready = Condition()
    with ready:
        while not items:
            ready.wait()
        return items.pop()
