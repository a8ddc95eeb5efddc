"""``rlm-lsp serve-model``: a model behind HTTP until SIGTERM or Ctrl+C; requests in flight are answered before the end.

Without a token only this machine may ask.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import Any

import rlm_core
from rlm_core import ModelError, RlmError
from rlm_core.inference.adaptation import personal
from rlm_core.serving.access import TOKEN, find_token, is_loopback
from rlm_core.serving.listening import listen
from rlm_core.serving.wire import Limits

from rlm_lsp.rendering import console

_CONNECTIONS = 1000
_KEEP_ALIVE = 75  # seconds; longer than an editor rests between two edits


def serve_model(
    host: str,
    port: int,
    model: str,
    threads: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    *,
    workers: int,
    max_batch: int,
    max_wait: float,
    max_queue: int,
    max_texts: int,
    max_characters: int,
    max_body: int,
    timeout: float,
) -> None:
    """Serve ``model`` with what this user has adapted it to; calls are not scaled to this CPU but on each client's.

    ``max_wait`` is in milliseconds, ``max_body`` in MiB, ``timeout`` in seconds.

    Raises:
        RlmError: the extra is missing, the address cannot be had, or there is no token where one is needed.
        ModelError: the model, the token or the certificate cannot be used.
    """
    token = find_token(token_file)
    if token is None and not is_loopback(host):
        raise RlmError(f"--host {host}: other machines may ask only with a token; give --token-file or set {TOKEN}")
    if (certificate is None) != (key is None):
        raise RlmError("serve-model: give --certificate and --key, both or neither")
    try:
        import uvicorn
        from rlm_core.serving.batching import Batching
        from rlm_core.serving.server import Settings, create_app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise RlmError(f"{error.name} is not installed; run: pip install '.[serve]'") from None

    signal.signal(signal.SIGTERM, _end)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="rlm-lsp: %(levelname)s: %(message)s")
    predictor = personal(rlm_core.load(model, threads=threads), cpu=False)
    settings = Settings(
        Limits(texts=max_texts, characters=max_characters, body_bytes=max_body * 2**20),
        Batching(texts=max_batch, wait=max_wait / 1000, queue=max_queue, workers=workers),
        timeout,
    )
    config = uvicorn.Config(
        create_app(predictor, settings, token),
        access_log=False,
        lifespan="on",
        limit_concurrency=_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=int(timeout) + 1,
        timeout_keep_alive=_KEEP_ALIVE,
        ws="none",
    )
    try:
        config.load()
    except OSError as error:
        raise ModelError(f"{certificate}, {key}: no certificate and key ({error.strerror}); both must be PEM") from None
    listener = listen(host, port)
    scheme, shown = "https" if certificate else "http", f"[{host}]" if ":" in host else host
    console.note(f"serving {predictor.model_id} on {scheme}://{shown}:{listener.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listener])


def _end(*_: Any) -> None:
    """Uvicorn hands SIGTERM on to here once requests in flight are answered: the end was asked for, no failure."""
    raise SystemExit(0)
