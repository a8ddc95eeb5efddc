"""The token, the hosts that are this machine, and the listening socket."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from rlm_core import ModelError, RlmError
from rlm_core.serving import access

from .support import TOKEN

pytestmark = pytest.mark.timeout(60)
OTHER = "another-token-of-the-tests-987654"


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user with nothing set; where the user's token file would be."""
    for name in (access.TOKEN, access.TOKEN_FILE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(access, "default_token_file", lambda: tmp_path / "user" / "token")
    (tmp_path / "user").mkdir()
    return tmp_path / "user" / "token"


def test_without_any_token_there_is_none() -> None:
    assert access.find_token() is None


def test_the_nearest_token_counts(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, given = tmp_path / "named", tmp_path / "given"
    user.write_text(f"{TOKEN}\n")
    assert access.find_token() == TOKEN
    named.write_text(f"{TOKEN}-named\n")
    monkeypatch.setenv(access.TOKEN_FILE, str(named))
    assert access.find_token() == f"{TOKEN}-named"
    monkeypatch.setenv(access.TOKEN, f" {OTHER}\n")
    assert access.find_token() == OTHER
    given.write_text(f"{TOKEN}-given")
    assert access.find_token(given) == f"{TOKEN}-given"


@pytest.mark.parametrize(
    "content", ["", "short", "two-words of-a-longer-text", "a-line-of-text-\nand-another-line", "ä" * 20]
)
def test_what_is_no_token_is_refused_without_showing_it(content: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match="make one with: python -c") as caught:
        access.find_token(path)
    assert str(path) in str(caught.value)
    assert not content or content not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.TOKEN_FILE, str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match=r"nowhere: the token cannot be read \(No such file or directory\)"):
        access.find_token()


@pytest.mark.parametrize(
    ("header", "same"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        ("Bearer é", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_whole_token_opens(header: str | None, same: bool) -> None:
    assert access.same_token(header, TOKEN) is same


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "[::1]"])
def test_this_machine(host: str) -> None:
    assert access.is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "gpu-box", "localhost.example.org", "127.0.0.1.example.org", ""]
)
def test_other_machines(host: str) -> None:
    assert not access.is_loopback(host)


@pytest.mark.asyncio
async def test_answers_are_not_held_back_until_they_fill_a_packet() -> None:
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listener = access.listen("127.0.0.1", 0)
    async with await asyncio.start_server(connected, sock=listener):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        assert await found
        writer.close()


def test_a_port_that_is_taken_is_named() -> None:
    with access.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RlmError) as caught:
            access.listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"--host 127.0.0.1 --port {port}: cannot listen (Address already in use); choose others"
    )


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_the_addresses_of_one_site_are_one_network(host: str, network: str) -> None:
    assert access.network_of(host) == network
