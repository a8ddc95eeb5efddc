"""``python -m rlm_lsp.settings``: write what documents the settings, for people, TOML editors and VS Code."""

from __future__ import annotations

from pathlib import Path

import click

from .generate import FORMATS, package


@click.command()
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="markdown", show_default=True)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write here instead of stdout.")
@click.option("--package", "manifest", metavar="FILE", type=click.Path(path_type=Path), help="Update a package.json.")
def main(form: str, out: Path | None, manifest: Path | None) -> None:
    """Write documentation, the JSON schema of rlm-lsp.toml, or VS Code's contributes.configuration."""
    if manifest is not None:
        manifest.write_text(package(manifest.read_text(encoding="utf-8")), encoding="utf-8")
        return
    text = FORMATS[form]()
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m rlm_lsp.settings")
