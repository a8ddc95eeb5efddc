"""``rlm-lsp mcp``: the predictions as tools for coding agents, over stdio."""

from __future__ import annotations

import click
from rlm_core import loading

from . import options
from .options import optional_packages


@click.command()
@options.model
@options.threads
@options.no_measured
@options.cpu_scale
def command(model: str, threads: int, no_measured: bool) -> None:
    """Serve predictions to coding agents over the Model Context Protocol (needs the [mcp] extra).

    Communicates over stdin and stdout until the client disconnects. The tools only read: they run none of your code,
    write nothing, and refuse paths outside the client's roots; without roots, outside the working directory.
    """
    with optional_packages():
        from rlm_lsp.mcp.server import create_server
    from rlm_lsp.mcp.tools import AgentTools

    measured = options.known_measurements(off=no_measured)
    create_server(AgentTools(lambda: loading.load_corrected(model, threads=threads), measured)).run("stdio")
