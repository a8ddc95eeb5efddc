"""The connection against servers that are busy, break off, or are no model servers at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rlm_core import ModelError
from rlm_core.serving import RemotePredictor, wire
from rlm_core.serving.connection import Connection, NoAnswerError, Patience
from rlm_core.types import LEVELS, Abstention, AbstentionCode

from .support import AT_ONCE, LATENCY, call

pytestmark = pytest.mark.timeout(120)
GOOD = wire.write(wire.Answer(version=wire.VERSION, model="m-1", predictions=()))
# Status, headers and body of an answer; a body shorter than its Content-Length is a connection that breaks.
Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def scripted(*replies: Reply) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn, the last one again and again; its address and what it was asked."""
    left, asked = list(replies), list[str]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(f"{self.command} {self.path} {self.client_address[1]}")
            status, headers, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = "Content-Length" in headers

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(url: str, times: int = 1, patience: Patience = AT_ONCE) -> Sequence[wire.Answer]:
    connection = Connection(url, None, allow_http=False, patience=patience)
    return [connection.request(wire.Answer, wire.PREDICT, b"{}") for _ in range(times)]


def test_one_connection_serves_many_requests() -> None:
    with scripted((200, {}, GOOD)) as (url, asked):
        ask(url, 3)
    assert len(asked) == 3
    assert len(set(asked)) == 1  # with the client's port in it


def test_an_address_may_have_a_path() -> None:
    with scripted((200, {}, GOOD)) as (url, asked):
        ask(f"{url}/models/student/")
    assert asked[0].startswith("POST /models/student/v2/predict ")


BUSY: Reply = (503, {"Retry-After": "0"}, b'{"error":"many wait"}')
BROKEN: Reply = (200, {"Content-Length": "1000"}, GOOD)


@pytest.mark.parametrize("trouble", [BUSY, BROKEN])
def test_a_busy_server_and_a_broken_connection_are_tried_again(trouble: Reply) -> None:
    with scripted(trouble, trouble, (200, {}, GOOD)) as (url, asked):
        [answer] = ask(url)
    assert answer.model == "m-1"
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("trouble", "line"),
    [
        (BUSY, "status 503, many wait"),
        (BROKEN, "it cannot be reached (the connection broke)"),
    ],
)
def test_after_three_tries_it_is_enough(trouble: Reply, line: str) -> None:
    with scripted(trouble) as (url, asked), pytest.raises(NoAnswerError) as caught:
        ask(url)
    assert (str(caught.value), caught.value.away) == (line, True)
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ((500, {}, b'{"error":"a mistake\\nof mine"}'), "status 500, a mistake of mine"),
        ((504, {}, b'{"error":"too slow"}'), "status 504, too slow"),
        ((404, {}, b"<html>"), "status 404, no reason given; is it rlm-lsp serve-model?"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "status 302, no reason given; is it rlm-lsp serve-model?"),
        (
            (200, {}, b"<html>hello</html>"),
            "it talks nonsense (not JSON (Expecting value, line 1, column 1));"
            " is it rlm-lsp serve-model of our version?",
        ),
        (
            (200, {}, b'{"version": 9}'),
            "it talks nonsense (version: must be 2, not 9); is it rlm-lsp serve-model of our version?",
        ),
    ],
)
def test_other_answers_are_not_tried_again(reply: Reply, line: str) -> None:
    with scripted(reply) as (url, asked), pytest.raises(NoAnswerError) as caught:
        ask(url)
    assert (str(caught.value), caught.value.away) == (line, False)
    assert len(asked) == 1


def test_a_server_that_does_not_answer_in_time_is_given_up_at_once() -> None:
    release = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            release.wait(60)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.raises(NoAnswerError, match=r"it took longer than 0\.2 s") as caught:
            ask(f"http://127.0.0.1:{server.server_port}", patience=replace(AT_ONCE, read=0.2))
    finally:
        release.set()
        server.shutdown()
        server.server_close()
        thread.join()
    assert caught.value.away


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.serving.connection._MOST_BYTES", 1000)
    with (
        scripted((200, {}, GOOD + b" " * 2000)) as (url, _),
        pytest.raises(NoAnswerError, match="its answer is larger than 1000 bytes"),
    ):
        ask(url)


def test_connecting_to_something_else_is_an_error_with_its_address() -> None:
    with scripted((200, {}, b"{}")) as (url, _), pytest.raises(ModelError) as caught:
        RemotePredictor(url, patience=AT_ONCE)
    assert str(caught.value) == (
        f"{url}: the model server gives no answer: it talks nonsense (`version` is missing);"
        " is it rlm-lsp serve-model of our version?"
    )


def test_answers_in_another_shape_than_the_questions_are_no_answers() -> None:
    info = wire.Info(version=wire.VERSION, model="m-1", levels=LEVELS, devices={}, defaults=(), limits=wire.Limits())
    with scripted((200, {}, wire.write(info)), (200, {}, GOOD)) as (url, _):
        [[answer]] = RemotePredictor(url, patience=AT_ONCE).predict([call("x")], [LATENCY])
    details = {"url": url, "problem": "its answers have another shape than the questions"}
    assert answer.abstained == Abstention(AbstentionCode.SERVER_UNAVAILABLE, details)
