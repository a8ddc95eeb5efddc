"""``rlm-lsp export``: a trained model -> the directory that ``--model`` takes."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH, optional_packages


@click.command()
@click.option("--model", metavar="DIR", type=PATH, required=True, help="Directory of a trained model.")
@click.option(
    "--out", metavar="DIR", type=PATH, required=True, help="Directory to write; it must not exist yet, or be empty."
)
def command(model: Path, out: Path) -> None:
    """Export a trained model for use as --model (needs the [train] extra).

    The encoder and the head become ONNX files, the encoder's matrices in 8-bit integers.
    """
    with optional_packages():
        from rlm_core.training.student.export import export
        from rlm_core.training.tuning.run import check_free, output_directory

        check_free(out)
        with output_directory(out) as made:
            export(model, made.directory)
            made.commit()
