"""The lens of one unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core import Prediction
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.lsp.document import locate
from rlm_lsp.lsp.features.code_lens import code_lens
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.settings.model import Settings

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
SOURCE = b"class Solution:\n    def run(self, n):\n        return n\n"
UNIT = locate(Analyser().analyse(ParsedSource(SOURCE, "python"))[0], Lines(SOURCE, PositionCodec()))


def test_a_lens_names_its_metrics_and_runs_a_command(make_prediction: MakePrediction) -> None:
    predictions = [make_prediction(), make_prediction(0.0, 3072.0, metric="memory")]
    lens = code_lens(UNIT, predictions, Settings(), {"memory": ("▼ 1.8×",)}, "rlm-lsp.explain", ["file:///a.py"])
    line = types.Position(0, 0)
    title = "latency 10–160 µs · peak memory ≤3 KiB ▼ 1.8×"
    assert lens == types.CodeLens(
        types.Range(line, line), types.Command(title, "rlm-lsp.explain", arguments=["file:///a.py"])
    )


def test_a_lens_without_a_command_only_shows_text(make_prediction: MakePrediction) -> None:
    lens = code_lens(UNIT, [make_prediction()], Settings(label="median"), {})
    assert lens is not None
    assert lens.command == types.Command("latency 85 µs", "")


def test_a_unit_with_nothing_to_show_has_no_lens(make_prediction: MakePrediction) -> None:
    assert code_lens(UNIT, [make_prediction(abstained=NO_NUMBER)], Settings(), {}) is None
