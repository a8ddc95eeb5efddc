"""Access to a model server: the shared token, which hosts are this machine itself, and the socket to listen on.

A token is a secret of at least 16 visible ASCII characters. It goes into the Authorization header and nowhere else:
no error, log or ``repr`` shows it.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from pathlib import Path

from platformdirs import user_config_path

from rlm_core.errors import ModelError, RlmError

TOKEN, TOKEN_FILE = "RLM_LSP_TOKEN", "RLM_LSP_TOKEN_FILE"
_SECRET = re.compile(r"[!-~]{16,4096}")
_MAKE_ONE = "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def default_token_file() -> Path:
    """Where the token is looked for when the environment names none: editors do not pass on a shell's variables."""
    return user_config_path("rlm-lsp") / "token"


def find_token(file: Path | None = None) -> str | None:
    """The token of ``file``, else of ``$RLM_LSP_TOKEN``, ``$RLM_LSP_TOKEN_FILE`` or the user's token file.

    Raises:
        ModelError: the file that was named cannot be read, or holds no valid token.
    """
    if file is not None:
        return _read(file)
    if os.environ.get(TOKEN):
        return _checked(os.environ[TOKEN], f"the variable {TOKEN}")
    if os.environ.get(TOKEN_FILE):
        return _read(Path(os.environ[TOKEN_FILE]))
    return _read(default_token_file()) if default_token_file().is_file() else None


def same_token(header: str | None, token: str) -> bool:
    """Return whether an Authorization header carries the token, in a time that does not depend on how much matches."""
    scheme, _, given = (header or "").partition(" ")
    matches = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    return matches and scheme.lower() == "bearer"


def is_loopback(host: str) -> bool:
    """Return whether a host, as written in an address, is certainly this machine: ``localhost`` or a loopback IP."""
    bare = host.strip("[]").lower()
    try:
        return bare == "localhost" or ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def network_of(host: str) -> str:
    """Return whose address this is: an IPv4 address itself, the /64 network of an IPv6 address, which one site has."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a host's port; port 0 takes any that is free.

    Raises:
        RlmError: the address cannot be used.
    """
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            # A restart must not wait until the connections of the last run are forgotten.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise RlmError(f"--host {host} --port {port}: cannot listen ({error.strerror}); choose others") from None
    return listener


def _read(file: Path) -> str:
    try:
        return _checked(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise ModelError(f"{file}: the token cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise ModelError(f"{file}: holds no token; {_MAKE_ONE}") from None


def _checked(text: str, where: str) -> str:
    token = text.strip()
    if not _SECRET.fullmatch(token):
        raise ModelError(f"{where}: holds no token (one line of 16 or more visible characters); {_MAKE_ONE}")
    return token
