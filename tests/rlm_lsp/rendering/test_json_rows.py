"""One prediction as JSON fields in SI units, also where the model abstains."""

from __future__ import annotations

import json
from collections.abc import Callable

from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Prediction
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.json_rows import prediction_fields, unit_row

from tests.fakes import NO_NUMBER

MakePrediction = Callable[..., Prediction]


def test_an_answer_has_its_median_band_and_unit(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(make_prediction(1e-6, 4e-6, median=2e-6))
    assert (fields["unit"], fields["median"], fields["low"], fields["high"]) == ("s", 2e-6, 1e-6, 4e-6)
    assert fields["coverage"] == 0.8
    assert json.loads(json.dumps(fields)) == fields


def test_an_abstention_has_a_reason_and_no_numbers(make_prediction: MakePrediction) -> None:
    fields = prediction_fields(make_prediction(metric="memory", abstained=NO_NUMBER, workload={"M": "64"}))
    assert [fields[name] for name in ("median", "low", "high", "coverage")] == [None] * 4
    assert (fields["unit"], fields["abstained"], fields["workload"]) == ("B", reason(NO_NUMBER), {"M": "64"})


def test_a_row_has_the_file_and_the_line_of_the_name_of_the_unit(make_prediction: MakePrediction) -> None:
    prediction = make_prediction()
    [unit] = Analyser().analyse(ParsedSource(b"\n\ndef f(n):\n    return n\n", "python"))
    row = unit_row("a.py", unit, prediction)
    assert (row["file"], row["line"], row["qualname"]) == ("a.py", 3, "f")
    assert {name: row[name] for name in prediction_fields(prediction)} == prediction_fields(prediction)
