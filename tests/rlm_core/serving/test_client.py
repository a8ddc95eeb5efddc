"""RemotePredictor against real servers, and against servers that are busy, break off or are something else."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import rlm_core
import trustme
from rlm_core import Callee, CodeText, ModelError, Prediction, Query
from rlm_core.loading import load_corrected
from rlm_core.serving import wire
from rlm_core.serving.batching import Batching
from rlm_core.serving.client import Connection, NoAnswerError, Patience, RemotePredictor
from rlm_core.serving.server import Settings
from rlm_core.types import LEVELS, Abstention, AbstentionCode

from .support import AT_ONCE, LATENCY, TOKEN, LengthPredictor, call, queued, serving, wait_until

pytestmark = pytest.mark.timeout(120)
BOTH = (Query("latency", "gpu-a", {"M": "64"}), Query("memory"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(LengthPredictor()) as url:
        yield url


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RLM_LSP_TOKEN", "RLM_LSP_TOKEN_FILE", "RLM_LSP_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)


def connected(url: str, token: str | None = None) -> RemotePredictor:
    return RemotePredictor(url, token=token, patience=AT_ONCE)


def reasons(predictor: RemotePredictor, *texts: str) -> list[Abstention | None]:
    return [line[0].abstained for line in predictor.predict([call(text) for text in texts], [LATENCY] * len(texts))]


def test_answers_are_those_of_the_model_itself(server: str) -> None:
    codes = [
        call("abc"),
        call("odd"),
        call("x" * 2000),
        CodeText("ä\u2028\U0001f600\x00", "java", "program", (Callee("def f(): pass"), Callee("y", 2))),
        call("none asked"),
    ]
    queries = [BOTH, LATENCY, BOTH, BOTH, ()]
    remote, local = connected(server), LengthPredictor()
    assert remote.predict(codes, queries) == local.predict(codes, queries)
    assert remote.model_id == local.model_id
    assert remote.devices("kernel") == local.devices("kernel")
    for language in ("python", "java"):
        assert remote.default_queries("call", language) == local.default_queries("call", language)


def test_a_language_that_the_server_has_not_heard_of_gets_the_models_defaults(server: str) -> None:
    assert connected(server).default_queries("call", "cobol") == (Query("latency"), Query("memory"))


def test_each_text_needs_its_queries(server: str) -> None:
    with pytest.raises(ValueError, match="zip"):
        connected(server).predict([call("x")], [])


def test_half_a_character_in_a_text_is_no_obstacle(server: str) -> None:
    assert reasons(connected(server), "x\ud800y") == [None]


def test_a_server_is_loaded_by_its_address(server: str) -> None:
    for predictor in (rlm_core.load(server), load_corrected(f"{server}/")):
        [[answer]] = predictor.predict([call("abc")], [LATENCY])
        assert answer.median == pytest.approx(3e-6)


def test_large_queries_are_sent_in_parts() -> None:
    predictor = LengthPredictor()
    limits = wire.Limits(texts=10, queries=16, characters=300, body_bytes=2000)
    with serving(predictor, Settings(limits)) as url:
        remote = connected(url)
        codes = [call("x" * size) for size in range(1, 24)]
        wide = [Query("latency", f"device {n}") for n in range(40)]
        queries = [LATENCY] * 11 + [wide] + [BOTH] * 11
        assert remote.predict(codes, queries) == LengthPredictor().predict(codes, queries)
        # Some 400 bytes each: the body is what limits these.
        long = [call("y" * 290) for _ in range(10)]
        assert remote.predict(long, [LATENCY] * 10) == LengthPredictor().predict(long, [LATENCY] * 10)


def test_what_the_server_would_not_read_is_abstained_from_and_the_rest_answered() -> None:
    limits = wire.Limits(characters=300, body_bytes=1000)
    with serving(LengthPredictor(), Settings(limits)) as url:
        found = reasons(connected(url), "x" * 301, "fine", "\x01" * 250)
    assert found[:2] == [Abstention(AbstentionCode.TEXT_TOO_LONG, {"limit": "300"}), None]
    assert found[2] is not None
    assert found[2].code is AbstentionCode.REQUEST_TOO_LARGE
    assert found[2].details["limit"] == "1000"


def test_a_text_that_is_too_long_with_what_it_calls_is_abstained_from() -> None:
    with serving(LengthPredictor(), Settings(wire.Limits(characters=300))) as url:
        code = replace(call("x" * 200), callees=(Callee("y" * 101),))
        [[answer]] = connected(url).predict([code], [LATENCY])
    assert answer.abstained == Abstention(AbstentionCode.TEXT_TOO_LONG, {"limit": "300"})


def test_many_clients_share_batches() -> None:
    predictor = LengthPredictor()
    with serving(predictor, Settings(batching=Batching(wait=0))) as url:
        remotes = [connected(url) for _ in range(8)]
        predictor.gate.clear()
        with ThreadPoolExecutor(8) as threads:
            first = threads.submit(reasons, remotes[0], "x")
            wait_until(predictor.busy.is_set)
            others = [threads.submit(reasons, remote, "x") for remote in remotes[1:]]
            wait_until(lambda: queued(url) == 7)
            predictor.gate.set()
            assert [future.result() for future in (first, *others)] == [[None]] * 8
    assert [len(texts) for texts in predictor.calls] == [1, 7]


def test_threads_share_one_client(server: str) -> None:
    remote, local = connected(server), LengthPredictor()
    codes = [call("x" * size) for size in range(1, 13)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda code: remote.predict([code], [BOTH]), codes))
    assert found == [local.predict([code], [BOTH]) for code in codes]


def test_a_server_that_is_gone_costs_only_the_number_and_is_found_again() -> None:
    with serving(LengthPredictor()) as url:
        port = int(url.rpartition(":")[2])
        remote = connected(url)
        assert reasons(remote, "x") == [None]
    [[answer]] = remote.predict([call("x")], [LATENCY])
    details = {"url": url, "problem": "it cannot be reached (Connection refused)"}
    reason = Abstention(AbstentionCode.SERVER_UNAVAILABLE, details)
    assert answer == Prediction.missing(call("x"), Query("latency"), "length-1", reason)
    assert answer.transient
    with serving(LengthPredictor("length-2"), port=port):
        assert reasons(remote, "x") == [None]
        assert remote.model_id == "length-2"


def test_after_a_failure_the_server_is_left_alone_for_a_while() -> None:
    with serving(LengthPredictor()) as url:
        port = int(url.rpartition(":")[2])
        remote = RemotePredictor(url, patience=replace(AT_ONCE, rest=1000))
    [failed] = reasons(remote, "x")
    with serving(predictor := LengthPredictor(), port=port):
        assert reasons(remote, "x", "y") == [failed, failed]
    assert predictor.calls == []


def test_an_unreachable_server_is_an_error_when_connecting() -> None:
    with serving(LengthPredictor()) as url:
        pass
    with pytest.raises(ModelError) as caught:
        connected(url)
    assert str(caught.value) == (f"{url}: the model server does not answer: it cannot be reached (Connection refused)")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://box",
        "http://",
        "https://box:port",
        "http://box:99999",
        "http://[::1",
        "https://box/?x=1",
        "https://box/#a",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ModelError, match=r"is not an address of a model server; write it like https://gpu-box:8765"):
        connected(url)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ModelError) as caught:
        connected("https://me:geheim@box")
    assert "geheim" not in str(caught.value)


def test_the_token_is_sent_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("RLM_LSP_TOKEN", TOKEN)
    with caplog.at_level(logging.DEBUG), serving(LengthPredictor(), token=TOKEN) as url:
        remote = connected(url)
        assert reasons(remote, "x", "poison")[0] is None
        with pytest.raises(ModelError, match=r"status 401, a token is needed.*\(set RLM_LSP_TOKEN ") as caught:
            connected(url, token=f"{TOKEN}x")
    shown = [caplog.text, repr(remote), repr(vars(remote)), str(caught.value), *map(str, reasons(remote, "x"))]
    assert "/v3/predict" in caplog.text
    assert not any(TOKEN in text for text in shown)


def test_a_token_does_not_cross_a_network_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="the token would travel unencrypted; use https, or set RLM_LSP_ALLOW_HTTP=1"):
        connected("http://gpu-box.invalid:8765", TOKEN)
    monkeypatch.setenv("RLM_LSP_ALLOW_HTTP", "1")
    with pytest.raises(ModelError, match=r"it cannot be reached \(no host of that name is known\)"):
        connected("http://gpu-box.invalid:8765", TOKEN)


def test_https_is_spoken_and_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, trusted = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(trusted))
    with serving(LengthPredictor(), token=TOKEN, files=(certificate, key)) as url:
        with pytest.raises(ModelError, match=r"it cannot be reached \(.*certificate"):
            connected(url, TOKEN)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert reasons(connected(url, TOKEN), "x") == [None]


def test_the_shipped_model_answers_the_same_through_a_server() -> None:
    local = rlm_core.load()
    codes = [
        call("def total(n):\n    return sum(range(n))"),
        call("def pairs(a):\n    return [(x, y) for x in a for y in a]"),
        CodeText("class Solution:\n    def f(self, a):\n        return sorted(a)", "python", "program"),
        call("   "),
    ]
    queries = [local.default_queries(code.basis, code.language) for code in codes]
    with serving(local) as url:
        remote = connected(url)
        assert [remote.default_queries(code.basis, code.language) for code in codes] == queries
        found: list[list[Prediction]] = remote.predict(codes, queries)
    assert found == local.predict(codes, queries)
    assert any(line[0].median is not None for line in found)
    assert found[-1][0].abstained == Abstention(AbstentionCode.EMPTY_TEXT)


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
    connection = Connection(url, None, patience=patience)
    return [connection.request(wire.Answer, wire.PREDICT, b"{}") for _ in range(times)]


def test_one_connection_serves_many_requests() -> None:
    with scripted((200, {}, GOOD)) as (url, asked):
        ask(url, 3)
    assert len(asked) == 3
    assert len(set(asked)) == 1  # with the client's port in it


def test_an_address_may_have_a_path() -> None:
    with scripted((200, {}, GOOD)) as (url, asked):
        ask(f"{url}/models/student/")
    assert asked[0].startswith("POST /models/student/v3/predict ")


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
        ((404, {}, b"<html>"), "status 404, no reason given; is it an rlm-lsp model server?"),
        (
            (302, {"Location": "http://127.0.0.1/"}, b""),
            "status 302, no reason given; is it an rlm-lsp model server?",
        ),
        (
            (200, {}, b"<html>hello</html>"),
            "unexpected response (not JSON (Expecting value, line 1, column 1));"
            " is it an rlm-lsp model server of the same version?",
        ),
        (
            (200, {}, b'{"version": 9}'),
            "unexpected response (version: must be 3, not 9); is it an rlm-lsp model server of the same version?",
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
    monkeypatch.setattr("rlm_core.serving.client._MOST_BYTES", 1000)
    with (
        scripted((200, {}, GOOD + b" " * 2000)) as (url, _),
        pytest.raises(NoAnswerError, match="its answer is larger than 1000 bytes"),
    ):
        ask(url)


def test_an_answer_that_drips_is_given_up_when_its_time_is_over() -> None:
    ended = threading.Event()

    class Dripping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "10000")
            self.end_headers()
            try:
                while not ended.wait(0.05):
                    self.wfile.write(b" ")
            except OSError:
                pass  # the client has gone

        def log_message(self, *args: object) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(NoAnswerError, match="does not end"):
                ask(f"http://127.0.0.1:{server.server_port}", patience=replace(AT_ONCE, read=0.5))
            assert time.monotonic() - began < 10
        finally:
            ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_server_that_drips_its_answer_is_given_up_when_its_time_is_over(start: bytes) -> None:
    """In the status line, in the headers, and in a body without a length."""
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        with listener.accept()[0] as connection, suppress(OSError):
            connection.recv(2**16)
            connection.sendall(start)
            while not ended.wait(0.05):
                connection.sendall(b"x")

    patience = replace(AT_ONCE, connect=0.3, read=0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        began = time.monotonic()
        try:
            with pytest.raises(NoAnswerError, match="does not end") as caught:
                ask(f"http://127.0.0.1:{listener.getsockname()[1]}", patience=patience)
            assert time.monotonic() - began < 10
        finally:
            ended.set()
            thread.join()
    assert caught.value.away


def test_connecting_to_something_else_is_an_error_with_its_address() -> None:
    with scripted((200, {}, b"{}")) as (url, _), pytest.raises(ModelError) as caught:
        RemotePredictor(url, patience=AT_ONCE)
    assert str(caught.value) == (
        f"{url}: the model server does not answer: unexpected response (`version` is missing);"
        " is it an rlm-lsp model server of the same version?"
    )


def test_answers_in_another_shape_than_the_questions_are_no_answers() -> None:
    info = wire.Info(version=wire.VERSION, model="m-1", levels=LEVELS, devices={}, defaults=(), limits=wire.Limits())
    with scripted((200, {}, wire.write(info)), (200, {}, GOOD)) as (url, _):
        [[answer]] = RemotePredictor(url, patience=AT_ONCE).predict([call("x")], [LATENCY])
    details = {"url": url, "problem": "its answers have another shape than the questions"}
    assert answer.abstained == Abstention(AbstentionCode.SERVER_UNAVAILABLE, details)
