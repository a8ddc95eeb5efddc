"""``rlm-lsp serve-model``: a model over HTTP until SIGTERM or Ctrl+C; requests in flight are answered before it ends.

Without a token, only clients on this machine are answered.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click
import rlm_core
from rlm_core import ModelError, RlmError
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.serving.access import TOKEN, find_token, is_loopback, listen
from rlm_core.serving.wire import Limits

from rlm_lsp.rendering import console

from . import options
from .options import PATH, optional_packages

_KEEP_ALIVE = 75  # seconds; longer than the usual pause between two edits
_COUNT = click.IntRange(min=1)


@click.command()
@click.option(
    "--host", metavar="HOST", default="127.0.0.1", help="Address to listen on; a token is required beyond localhost."
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8765, help="Port to listen on (0: any free port)."
)
@options.model
@options.threads
@click.option("--token-file", metavar="FILE", type=PATH, help="File with the token.", show_default="RLM_LSP_TOKEN")
@click.option("--certificate", metavar="FILE", type=PATH, help="Certificate chain (PEM), to serve HTTPS.")
@click.option("--key", metavar="FILE", type=PATH, help="Private key of the certificate (PEM).")
@click.option("--workers", metavar="N", type=click.IntRange(1, 64), default=1, help="Batches predicted in parallel.")
@click.option("--max-batch", metavar="TEXTS", type=click.IntRange(1, 4096), default=64, help="Texts per batch.")
@click.option(
    "--max-wait",
    metavar="MS",
    type=click.FloatRange(0, 1000),
    default=0,
    help="Milliseconds to wait for a batch to fill.",
)
@click.option("--max-queue", metavar="TEXTS", type=_COUNT, default=4096, help="Texts that may wait for the model.")
@click.option("--max-texts", metavar="N", type=_COUNT, default=256, help="Texts per request.")
@click.option("--max-characters", metavar="N", type=_COUNT, default=200_000, help="Characters per text.")
@click.option("--max-body", metavar="MIB", type=click.IntRange(1, 1024), default=16, help="Size of a request in MiB.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    help="Time limit of a request in seconds.",
)
def command(
    host: str,
    port: int,
    model: str,
    threads: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    workers: int,
    max_batch: int,
    max_wait: float,
    max_queue: int,
    max_texts: int,
    max_characters: int,
    max_body: int,
    timeout: float,
) -> None:
    """Serve a model to a team over HTTP (needs the [serve] extra).

    Clients use it as --model http://HOST:PORT. The server applies the devices that this user adapted; each client
    scales latencies to its own CPU.
    """
    token = find_token(token_file)
    if token is None and not is_loopback(host):
        raise RlmError(f"--host {host}: other machines need a token; give --token-file or set {TOKEN}")
    if (certificate is None) != (key is None):
        raise RlmError("serve-model: --certificate and --key go together; give both or neither")
    with optional_packages():
        import uvicorn
        from rlm_core.serving.batching import Batching
        from rlm_core.serving.server import MOST_CONNECTIONS, Settings, TimedConnection, create_app

    signal.signal(signal.SIGTERM, _exit)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="rlm-lsp: %(levelname)s: %(message)s")
    predictor = with_corrections(rlm_core.load(model, threads=threads), cpu=False)
    settings = Settings(
        Limits(texts=max_texts, characters=max_characters, body_bytes=max_body * 2**20),
        Batching(
            texts=max_batch,
            parallel=threads or os.cpu_count() or 1,
            wait=max_wait / 1000,
            queue=max_queue,
            workers=workers,
        ),
        timeout,
    )
    config = uvicorn.Config(
        create_app(predictor, settings, token),
        access_log=False,
        lifespan="on",
        limit_concurrency=MOST_CONNECTIONS,
        http=TimedConnection,
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
        reason = error.strerror
        raise ModelError(f"{certificate}, {key}: not a certificate and key ({reason}); both must be PEM") from None
    listener = listen(host, port)
    scheme, shown = "https" if certificate else "http", f"[{host}]" if ":" in host else host
    console.note(f"serving {predictor.model_id} on {scheme}://{shown}:{listener.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listener])


def _exit(*_: Any) -> None:
    """Uvicorn passes SIGTERM on to here after it answered the requests in flight: a normal end, not a failure."""
    raise SystemExit(0)
