"""The hint of one unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core import Prediction
from rlm_core.analysis import Analyser
from rlm_lsp.documents import place
from rlm_lsp.features.inlay_hints import inlay_hint
from rlm_lsp.positions import Lines

pytestmark = pytest.mark.timeout(30)

SOURCE = b"def f(n):\n    return n\n"
UNIT = place(Analyser().analyse(SOURCE, "python")[0], Lines(SOURCE, PositionCodec()))


def test_a_hint_stands_behind_the_signature_and_explains_itself(make_prediction: Callable[..., Prediction]) -> None:
    hint = inlay_hint(UNIT, [make_prediction(), make_prediction(0.0, 3072.0, metric="memory")])
    assert hint == types.InlayHint(
        position=types.Position(0, 9),
        label="10–160 µs · ≤3 KiB",
        tooltip="latency, peak memory: 80 % band of one call, as its tests call it",
        padding_left=True,
    )


def test_a_unit_on_which_the_model_abstains_has_no_hint(make_prediction: Callable[..., Prediction]) -> None:
    assert inlay_hint(UNIT, [make_prediction(abstained="not trained")]) is None
    assert inlay_hint(UNIT, []) is None
