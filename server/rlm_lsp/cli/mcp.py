"""``rlm-lsp mcp``: the predictions as tools for coding agents, over stdio."""

from __future__ import annotations

from pathlib import Path

import click
from rlm_core import loading

from rlm_lsp.mcp.skill import review_skill

from . import options
from .options import optional_packages


@click.command()
@click.option(
    "--root",
    "folders",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    help="A folder that the tools may read, instead of the client's roots; repeatable.",
)
@click.option("--skill", is_flag=True, help="Print a skill (SKILL.md) for reviews of a change's cost, and exit.")
@options.model
@options.threads
@options.no_measured
@options.cpu_scale
def command(folders: tuple[Path, ...], skill: bool, model: str, threads: int, no_measured: bool) -> None:
    """Serve predictions to coding agents over the Model Context Protocol (needs the [mcp] extra).

    Communicates over stdin and stdout until the client disconnects. The tools only read: they run none of your code,
    write nothing, and refuse paths outside the folders of --root; without --root, outside the client's roots; without
    roots, outside the working directory.
    """
    if skill:
        click.echo(review_skill(), nl=False)
        return
    with optional_packages():
        from rlm_lsp.mcp.server import create_server
    from rlm_lsp.mcp.roots import Roots
    from rlm_lsp.mcp.tools import AgentTools

    measured = options.known_measurements(off=no_measured)
    tools = AgentTools(lambda: loading.load_corrected(model, threads=threads), measured)
    create_server(tools, Roots.of_folders(folders) if folders else None).run("stdio")
