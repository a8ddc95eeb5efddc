"""Follows a page as a reader would: writes its files and runs its commands, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .blocks import Block, Command, commands
from .sessions import Ended, Session

_CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_1x1~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
NETWORK = "net.onnx"
# What a reader has downloaded, and measured.
CHECKPOINT, ROWS, PUBLISHED = "downloads/RLM-GemmaS-Code-v0", "rows.parquet", "data.parquet"
REGRESS_LM, PIECES = "checkpoint.pt", "spiece.model"


@dataclass(frozen=True, slots=True)
class Played:
    """A command that ran, its result, and the exit status that the page states."""

    block: Block
    command: Command
    ended: Ended
    status: int

    @property
    def printed(self) -> tuple[str, ...]:
        """The output that the page should show."""
        return self.ended.shown(self.command.output or ())


def play(page: Sequence[Block], folder: Path) -> Iterator[Played]:
    """Run the blocks of a page that can be run, in a new scratch folder below ``folder``."""
    session = Session(folder)
    if any(NETWORK in block.text for block in page if block.is_run):
        _write_network(session.work / NETWORK)
    if any(CHECKPOINT in block.text for block in page if block.is_run):
        _write_checkpoint(session.work)
    if any(REGRESS_LM in block.text for block in page if block.is_run):
        _write_regress_lm(session.work)
    for block in page:
        needs = block.values.get("needs", "")
        if "title" in block.values and not block.holds_commands:
            session.write(block)
        if "run" in block.classes:
            yield Played(block, Command(block.text, None, 0), session.run(block.text, needs, "python"), 0)
        if not block.is_run:
            continue
        found = commands(block)
        for command in found:
            status = int(block.values.get("status", "0")) if command is found[-1] else 0
            yield Played(block, command, session.run(command.text, needs), status)


def _write_network(path: Path) -> None:
    """Write an example network: a cell of NAS-Bench-201, without weights."""
    # Only pages about networks need the [onnx] extra.
    import onnx

    from tools.nas.spaces import build

    onnx.save(build(("nasbench201", (_CELL,))), path)


def _write_checkpoint(folder: Path) -> None:
    """Write a small model in the layout of the published ones, and rows to calibrate it on."""
    # Only pages about the full model need the [rlm] extra.
    from tests import full_models

    full_models.write_checkpoint(folder / CHECKPOINT)
    full_models.write_rows(folder / ROWS)
    full_models.write_published_rows(folder / PUBLISHED)


def _write_regress_lm(folder: Path) -> None:
    """Write a small checkpoint of regress-lm and its tokenizer."""
    from tests.rlm_core.training.full import test_regress_lm as recorded

    recorded.checkpoint("p10", folder).rename(folder / REGRESS_LM)
    (folder / PIECES).write_bytes((recorded.DATA / "tokenizer.model").read_bytes())
