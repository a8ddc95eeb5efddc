"""``python -m rlm_lsp.settings``: write what documents the settings, for people, TOML editors and VS Code."""

from __future__ import annotations

from pathlib import Path

import click

from .generate import FORMATS


@click.command()
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="markdown", show_default=True)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write here instead of stdout.")
def main(form: str, out: Path | None) -> None:
    """Write documentation, the JSON schema of rlm-lsp.toml, or VS Code's contributes.configuration."""
    text = FORMATS[form]()
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m rlm_lsp.settings")
