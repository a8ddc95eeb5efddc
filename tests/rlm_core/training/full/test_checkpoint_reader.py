"""Checkpoints of regress-lm are read in a child process: whatever a file holds, the parent gets weights or one line."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rlm_core.errors import ModelError
from rlm_core.training.full import checkpoint_reader
from rlm_core.training.full.checkpoint_reader import read_checkpoint

pytestmark = pytest.mark.extras
STATE = {
    "encoder_decoder.tgt_tok_emb.weight": torch.arange(6.0).view(2, 3),
    "encoder_decoder.decoder_positional_encoding.pe": torch.zeros(1, 8, 3),
}


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("run",)


def saved(data: object, **settings: Any) -> bytes:
    """The bytes of a ``.pt`` file."""
    content = io.BytesIO()
    torch.save(data, content, **settings)
    return content.getvalue()


@pytest.mark.parametrize("settings", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_weights_are_those_of_the_file(settings: dict[str, Any], tmp_path: Path) -> None:
    tied = torch.ones(2, 3)
    state = STATE | {f"module.encoder_decoder.encoder.{name}": tied.T for name in ("first", "second")}
    path = tmp_path / "model.pt"
    path.write_bytes(saved({"model_state": state, "optimizer_state": {"lr": 0.1}, "global_step": 1}, **settings))
    weights = read_checkpoint(path)
    assert set(weights) == {"tgt_tok_emb.weight", "encoder.first", "encoder.second", "places"}
    torch.testing.assert_close(weights["tgt_tok_emb.weight"], STATE["encoder_decoder.tgt_tok_emb.weight"])
    torch.testing.assert_close(weights["encoder.second"], tied.T)
    assert int(weights["places"]) == 8


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "not a PyTorch file, or damaged; give a checkpoint"),
        (b"", "not a PyTorch file, or damaged; give a checkpoint"),
        (saved({"model_state": STATE})[:500], "not a PyTorch file, or damaged"),
        (saved({"model_state": {}, "extra": Trap()}), "holds more than weights, which is never loaded"),
        (saved({"model_state": {"weight": torch.ones(2)}}), "has no weights of an EncoderDecoder"),
        (saved([1, 2]), "has no weights of an EncoderDecoder"),
        (saved({"model_state": {"encoder_decoder.x": torch.eye(2).to_sparse()} | STATE}), "not a PyTorch file, or"),
        (
            # A few bytes that ask for 4 TiB.
            saved({"model_state": STATE | {"encoder_decoder.x": torch.zeros(1).expand(2**40)}}),
            r"needs more than 4\.0 GiB of memory",
        ),
    ],
    ids=["nonsense", "empty", "cut", "code", "other weights", "list", "sparse", "memory"],
)
def test_other_files_are_refused_in_one_line(
    content: bytes, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=f"^{re.escape(str(path))}: {message}") as caught:
        read_checkpoint(path)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_what_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.pt", "No such file"), (tmp_path, "not a file")):
        with pytest.raises(ModelError, match=f"cannot be read \\({reason}"):
            read_checkpoint(path)


def test_a_child_that_takes_too_long_or_is_killed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(saved({"model_state": STATE}))
    monkeypatch.setattr(checkpoint_reader, "_SECONDS", 0.01)
    with pytest.raises(ModelError, match=r"model\.pt: cannot be read within 0 s; save its model_state alone"):
        read_checkpoint(path)
    monkeypatch.setattr(checkpoint_reader, "_SECONDS", 60.0)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match=r"the process that reads it fails \(exit status 1\)"):
        read_checkpoint(path)
