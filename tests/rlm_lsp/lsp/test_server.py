"""The wiring of the server: which errors of pygls pop up."""

from __future__ import annotations

import pytest
from pygls.exceptions import FeatureNotificationError, JsonRpcInternalError, JsonRpcInvalidParams
from rlm_lsp.lsp.server import Server

from .conftest import Wire

pytestmark = pytest.mark.timeout(30)


def test_an_error_inside_pops_up_once_and_is_logged_always(server: Server, wire: Wire) -> None:
    server.session.log_error(ValueError("one"))
    server.report_server_error(JsonRpcInternalError("two"), FeatureNotificationError)
    [popped] = wire.texts("window/showMessage")
    assert "ValueError('one')" in popped
    assert len(wire.texts("window/logMessage")) == 2
    assert all(word in server.session.log_tail.text() for word in ("one", "two"))


def test_what_the_client_got_wrong_does_not_pop_up(server: Server, wire: Wire) -> None:
    server.report_server_error(JsonRpcInvalidParams("no position"), FeatureNotificationError)
    assert wire.texts("window/showMessage") == []
    assert len(wire.texts("window/logMessage")) == 1
