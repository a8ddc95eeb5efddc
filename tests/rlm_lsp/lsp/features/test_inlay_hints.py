"""The hint of one unit, and which hints the user has switched off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core import Prediction
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Wait, WaitKind, WorkFacts
from rlm_lsp.lsp.document import locate
from rlm_lsp.lsp.features.inlay_hints import HiddenHints, inlay_hint
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.settings.model import Settings

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
SOURCE = b"def f(n):\n    return n\n"
UNIT = locate(Analyser().analyse(ParsedSource(SOURCE, "python"))[0], Lines(SOURCE, PositionCodec()))
SETTINGS = Settings()


def label(hint: types.InlayHint | None) -> object:
    return hint.label if hint is not None else None


def test_a_hint_follows_the_signature_and_explains_itself(make_prediction: MakePrediction) -> None:
    hint = inlay_hint(UNIT, [make_prediction(), make_prediction(0.0, 3072.0, metric="memory")], SETTINGS)
    assert hint == types.InlayHint(
        position=types.Position(0, 9),
        label="10–160 µs · ≤3 KiB",
        tooltip="latency, peak memory: 80 % band of one call, as tests would call it",
        padding_left=True,
    )


def test_the_tooltip_of_a_client_that_resolves_comes_later(make_prediction: MakePrediction) -> None:
    hint = inlay_hint(UNIT, [make_prediction()], SETTINGS, uri="file:///a.py", version=3)
    assert hint is not None
    assert hint.tooltip is None
    assert hint.data == {"uri": "file:///a.py", "version": 3, "unit": "f"}


def test_a_unit_on_which_the_model_abstains_has_no_hint(make_prediction: MakePrediction) -> None:
    assert inlay_hint(UNIT, [make_prediction(abstained=NO_NUMBER)], SETTINGS) is None
    assert inlay_hint(UNIT, [], SETTINGS) is None


def test_settings_say_what_a_label_shows_and_how_long_it_is(make_prediction: MakePrediction) -> None:
    hint = inlay_hint(UNIT, [make_prediction()], Settings(label="median"))
    assert hint is not None
    assert (hint.label, hint.tooltip) == ("85 µs", "latency: median of one call, as tests would call it")
    assert label(inlay_hint(UNIT, [make_prediction()], Settings(label="median±"))) == "85 ±75 µs"
    assert label(inlay_hint(UNIT, [make_prediction()], Settings(max_label=8))) == "≤160 µs"
    # The space in front of the label counts.
    assert inlay_hint(UNIT, [make_prediction()], Settings(max_label=7)) is None
    assert inlay_hint(UNIT, [make_prediction()], Settings(max_label=5)) is None


def test_a_unit_that_waits_is_labelled(make_prediction: MakePrediction) -> None:
    code = replace(UNIT.analysed.code, work=WorkFacts(waits=(Wait(WaitKind.NETWORK, 1, "requests.get"),)))
    waiting = replace(UNIT, analysed=replace(UNIT.analysed, code=code))
    assert label(inlay_hint(waiting, [make_prediction()], SETTINGS)) == "waits: network · 85 µs"
    abstained = inlay_hint(waiting, [make_prediction(abstained=NO_NUMBER)], SETTINGS)
    assert (label(abstained), abstained is not None and abstained.tooltip) == (
        "waits: network",
        "what the unit waits for, and the median of its computing time; the hover names the lines",
    )


def test_a_change_is_marked(make_prediction: MakePrediction) -> None:
    assert label(inlay_hint(UNIT, [make_prediction()], SETTINGS, {"latency": ("▲ 2.1×",)})) == "10–160 µs ▲ 2.1×"


def test_files_and_languages_are_switched_off_and_on() -> None:
    hidden = HiddenHints()
    assert not hidden.hides("file:///a.py", "python")
    assert hidden.toggle({"file": "file:///a.py"})
    assert hidden.hides("file:///a.py", "python")
    assert not hidden.hides("file:///b.py", "python")
    assert hidden.toggle({"language": "python"})
    assert hidden.hides("file:///b.py", "python")
    assert not hidden.hides("file:///b.go", "go")
    assert not hidden.toggle({"language": "python"})
    assert not hidden.toggle({"file": "file:///a.py"})
    assert not hidden.hides("file:///a.py", "python")
