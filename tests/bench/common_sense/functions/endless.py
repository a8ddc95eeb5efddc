"""Loops and recursions that do not end, or may not."""

import itertools
import socket
import time


def spin():
    while True:
        pass


def count_forever():
    n = 0
    while True:
        n += 1


def poll_forever(check):
    while True:
        check()
        time.sleep(1)


def while_one():
    while 1:
        print("tick")


def forgotten_increment():
    i = 0
    while i < 10:
        print(i)


def wrong_direction():
    n = 10
    while n > 0:
        n += 1


def iterate_count():
    total = 0
    for n in itertools.count():
        total += n
    return total


def cycle_colours():
    for colour in itertools.cycle(["red", "green"]):
        print(colour)


def recursion_without_base(n):
    return recursion_without_base(n + 1)


def serve(port):
    server = socket.socket()
    server.bind(("", port))
    server.listen()
    while True:
        client, _ = server.accept()
        client.send(b"hello")
        client.close()


def main_loop(queue, handlers):
    while True:
        event = queue.pop()
        handler = handlers.get(event)
        if handler is not None:
            handler(event)


def sum_of_endless():
    return sum(itertools.repeat(1))


class Daemon:
    def run(self):
        while True:
            self.tick()
            time.sleep(0.5)

    def tick(self):
        self.last = time.time()


async def heartbeat(send):
    import asyncio

    while True:
        await send("ping")
        await asyncio.sleep(30)
