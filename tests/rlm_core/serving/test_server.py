"""The model server over real HTTP: what it answers, who may ask, what it refuses, and that it bears bad clients."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Query
from rlm_core.serving import server as server_module
from rlm_core.serving import wire
from rlm_core.serving.batching import Batching
from rlm_core.serving.server import Settings
from rlm_core.types import LEVELS, Basis

from .support import HTTP, LATENCY, TOKEN, LengthPredictor, call, queued, serving, wait_until

pytestmark = pytest.mark.timeout(120)
QUESTION = {"text": "abc", "language": "python", "basis": "call", "queries": [{"metric": "latency"}]}
SMALL = Settings(wire.Limits(texts=3, queries=5, characters=100, body_bytes=4000))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server with small limits and without a token."""
    with serving(LengthPredictor(), SMALL) as url:
        yield url


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A server with a token."""
    with serving(LengthPredictor(), token=TOKEN) as url:
        yield url


def post(url: str, body: Any, **headers: str) -> urllib3.BaseHTTPResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HTTP.request("POST", url + wire.PREDICT, body=data, headers={"Content-Type": "application/json", **named})


def refusal(response: urllib3.BaseHTTPResponse) -> tuple[int, str]:
    """Status and the one line of an answer that is none."""
    body = json.loads(response.data)
    assert set(body) == {"error"}
    assert "\n" not in body["error"]
    return response.status, body["error"]


def test_a_question_is_answered(server: str) -> None:
    response = post(server, {"version": wire.VERSION, "questions": [QUESTION]})
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    answer = wire.read(wire.Answer, response.data)
    assert answer.model == "length-1"
    assert answer.predictions == tuple(map(tuple, LengthPredictor().predict([call("abc")], [LATENCY])))


def test_the_model_is_described(server: str) -> None:
    info = wire.read(wire.Info, HTTP.request("GET", server + wire.INFO).data)
    assert (info.model, info.levels, info.limits) == ("length-1", LEVELS, SMALL.limits)
    assert info.devices["kernel"] == ("gpu-a", "gpu-b")
    java, other = sorted((entry for entry in info.defaults if entry.basis == "call"), key=lambda e: len(e.languages))
    assert (java.languages, java.queries[0]) == (("java",), Query("latency", "cpu", {"date": "2024-Q1"}))
    assert "python" in other.languages
    assert other.queries[0] == Query("latency", "cpu", {})


@pytest.mark.parametrize(
    ("body", "status", "line"),
    [
        (b"", 400, "not JSON (Expecting value, line 1, column 1)"),
        (b"\xff\xfe", 400, "not UTF-8 (byte 0)"),
        (b"[", 400, "not JSON (Expecting value, line 1, column 2)"),
        ([], 400, "must be an object, not []"),
        ({"version": 1, "questions": []}, 400, "version: must be 3, not 1"),
        ({"questions": [{**QUESTION, "basis": "cell"}]}, 400, 'questions[0].basis: must be one of "call", "program",'),
        ({"questions": [{**QUESTION, "queries": [{}]}]}, 400, "questions[0].queries[0]: `metric` is missing"),
        ({"questions": [QUESTION] * 4}, 413, "4 texts are more than 3; send several requests"),
        (
            {"questions": [{**QUESTION, "queries": [{"metric": "latency"}] * 6}]},
            413,
            "6 queries are more than 5; send several requests",
        ),
        (
            {"questions": [QUESTION, {**QUESTION, "text": "x" * 101}]},
            413,
            "questions[1]: 101 characters in one question are more than 100; leave it out",
        ),
        (
            {"questions": [{**QUESTION, "callees": [{"text": "x" * 98}]}]},
            413,
            "questions[0]: 101 characters in one question are more than 100; leave it out",
        ),
        *(
            (
                {"questions": [{**QUESTION, "text": "x" * 50, **more}]},
                413,
                "questions[0]: 101 characters in one question are more than 100; leave it out",
            )
            for more in (
                {"callees": [{"text": "y" * 25}, {"text": "z" * 26}]},
                {"callees": [{"text": "y" * 25}], "calls": {"sites": [{"candidates": [{"text": "z" * 26}]}]}},
                {"calls": {"of_package": {"functions": [{"text": "z" * 51}]}}},
            )
        ),
        (b" " * 4001, 413, "the request is larger than 4000 bytes; send less"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(server: str, body: Any, status: int, line: str) -> None:
    found = refusal(post(server, body))
    assert found[0] == status
    assert found[1].startswith(line)


def test_a_text_that_is_called_in_several_places_counts_once(server: str) -> None:
    site = {"candidates": [{"text": "y" * 50}]}
    question = {**QUESTION, "callees": [{"text": "y" * 50}], "calls": {"sites": [site] * 5}}
    assert post(server, {"questions": [question]}).status == 200


@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5).map(repr))
def test_whatever_is_sent_is_a_request_or_refused(server: str, body: bytes | str) -> None:
    status, _ = refusal(post(server, body if isinstance(body, bytes) else body.encode("utf-8", "replace")))
    assert status == 400


def test_a_body_without_a_length_is_cut_off_at_the_limit(server: str) -> None:
    response = HTTP.request(
        "POST",
        server + wire.PREDICT,
        body=iter([b" " * 1000] * 5),
        headers={"Content-Type": "application/json"},
        chunked=True,
    )
    assert refusal(response) == (413, "the request is larger than 4000 bytes; send less")


def test_a_page_of_another_site_cannot_ask_with_a_plain_form(server: str) -> None:
    status, line = refusal(post(server, {"questions": []}, Content_Type="text/plain"))
    assert (status, line) == (415, "send the request as Content-Type: application/json")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/predict", 404), ("GET", wire.PREDICT, 405)])
def test_other_addresses_and_methods_are_refused(server: str, method: str, path: str, status: int) -> None:
    found, line = refusal(HTTP.request(method, server + path))
    assert found == status
    assert line.endswith("; see /openapi.json")


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
@pytest.mark.parametrize("path", [wire.INFO, wire.METRICS, wire.PREDICT])
def test_without_the_token_nothing_is_disclosed(guarded: str, path: str, header: dict[str, str]) -> None:
    method = "POST" if path == wire.PREDICT else "GET"
    response = HTTP.request(method, guarded + path, headers=header)
    assert refusal(response) == (401, "a token is needed, as Authorization: Bearer TOKEN")
    assert response.headers["www-authenticate"] == "Bearer"


def test_the_token_opens(guarded: str) -> None:
    assert post(guarded, {"questions": [QUESTION]}, Authorization=f"Bearer {TOKEN}").status == 200


def test_health_and_the_description_are_open_to_all(guarded: str) -> None:
    assert json.loads(HTTP.request("GET", guarded + wire.HEALTH).data) == {"status": "ok", "queued": 0}
    document = json.loads(HTTP.request("GET", guarded + "/openapi.json").data)
    assert document["security"] == [{"token": []}]
    page = HTTP.request("GET", guarded + "/")
    assert page.headers["content-type"].startswith("text/html")
    assert b"/v3/predict" in page.data
    assert b"RLM_LSP_TOKEN" in page.data


def test_what_was_done_is_counted() -> None:
    with serving(LengthPredictor()) as url:
        post(url, {"questions": [QUESTION] * 3})
        lines = HTTP.request("GET", url + wire.METRICS).data.decode().splitlines()
    found = dict(line.split() for line in lines if not line.startswith("#"))
    assert {name: found[name] for name in ("rlm_lsp_texts_total", "rlm_lsp_batches_total")} == {
        "rlm_lsp_texts_total": "3",
        "rlm_lsp_batches_total": "1",
    }


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    return socket.create_connection((address.hostname, address.port), timeout=100)


def head(length: int) -> bytes:
    """The lines before a body of ``length`` bytes."""
    return (
        f"POST {wire.PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_a_client_that_does_not_finish_its_request_is_disconnected_and_blocks_no_other() -> None:
    with serving(LengthPredictor(), Settings(seconds=2)) as url, connect(url) as slow:
        slow.sendall(head(1000) + b'{"questions"')
        assert post(url, {"questions": [QUESTION]}).status == 200
        answer = b""
        while part := slow.recv(4096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"error":"the request did not arrive in time"}')


def test_queries_of_a_disconnected_client_do_not_reach_the_model() -> None:
    predictor = LengthPredictor()
    predictor.gate.clear()
    with serving(predictor) as url:
        waits = threading.Thread(target=post, args=(url, {"questions": [QUESTION]}))
        waits.start()
        wait_until(predictor.busy.is_set)
        body = json.dumps({"questions": [QUESTION]}).encode()
        with connect(url) as leaves:
            leaves.sendall(head(len(body)) + body)
            wait_until(lambda: queued(url) == 1)
        wait_until(lambda: queued(url) == 0)
        predictor.gate.set()
        waits.join()
    assert len(predictor.calls) == 1


def test_a_full_queue_asks_to_come_back() -> None:
    predictor = LengthPredictor()
    predictor.gate.clear()
    with serving(predictor, Settings(batching=Batching(queue=1))) as url:
        threads = []
        for count in range(2):
            threads.append(threading.Thread(target=post, args=(url, {"questions": [QUESTION]})))
            threads[-1].start()
            wait_until(predictor.busy.is_set)
            wait_until(lambda count=count: queued(url) == count)  # type: ignore[misc]
        response = post(url, {"questions": [QUESTION]})
        predictor.gate.set()
        for thread in threads:
            thread.join()
    assert refusal(response) == (503, "1 texts wait for the model; ask again in a moment")
    assert response.headers["retry-after"] == "1"


def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    predictor = LengthPredictor()
    predictor.gate.clear()
    with serving(predictor, Settings(seconds=1)) as url:
        found = refusal(post(url, {"questions": [QUESTION]}))
        predictor.gate.set()
    assert found == (504, "the model was too slow; ask about fewer texts, or again later")


def test_the_rest_of_a_cancelled_request_does_not_reach_the_model() -> None:
    predictor = LengthPredictor()
    predictor.gate.clear()
    large = [{**QUESTION, "text": "x" * 60} for _ in range(3)]
    settings = Settings(batching=Batching(step=100), seconds=1)
    with serving(predictor, settings) as url:
        found = refusal(post(url, {"questions": large}))
        assert queued(url) == 0
        predictor.gate.set()
        # Another request is answered after what was begun.
        assert post(url, {"questions": [QUESTION]}).status == 200
    assert found[0] == 504
    assert [[len(code.text) for code in batch] for batch in predictor.calls] == [[60], [3]]


class Broken(LengthPredictor):
    """Does not know its devices."""

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        raise LookupError("secret detail")


def test_an_internal_server_error_is_reported_without_details() -> None:
    with serving(Broken()) as url:
        found = refusal(HTTP.request("GET", url + wire.INFO))
    assert found == (500, "the server made a mistake; its log says more")


@pytest.fixture
def fresh_server() -> Iterator[str]:
    """A server that no other test has connected to."""
    with serving(LengthPredictor()) as url:
        yield url


def ended(connection: socket.socket) -> bool:
    """Whether the server closes a connection, without an answer, within a minute."""
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("start", [b"", b"P", b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_does_not_end_is_not_waited_for(
    fresh_server: str, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.2)
    with connect(fresh_server) as waits:
        waits.sendall(start)
        assert ended(waits)


def test_a_second_head_is_timed_like_the_first(fresh_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.5)
    with connect(fresh_server) as waits:
        waits.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while b'"queued":0}' not in received:
            received += waits.recv(1000)
        waits.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        assert ended(waits)


def test_a_thousand_connections_with_a_request_line_each_block_no_client(fresh_server: str) -> None:
    with ExitStack() as opened:
        for _ in range(1_000):
            waits = opened.enter_context(connect(fresh_server))
            waits.sendall(b"POST /v3/predict HTTP/1.1\r\n")
        for _ in range(3):
            response = HTTP.request("GET", fresh_server + wire.HEALTH, timeout=10)
            assert response.status == 200
