"""Fitting costs at sizes: rows from labels and a wheel, forests that rise with sizes, bands, and the command."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlm_core.inference.card import read_card
from rlm_core.inference.input_growth import INPUT_GROWTH
from rlm_core.inference.input_growth import load as load_growth
from rlm_core.inference.model_store import builtin
from rlm_core.inference.sized_cost import FEATURES, MOST_WIDTH, RATIO, RISING, SIZED_COST, WIDTH, load, log_seconds
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training import sized_cost_fit
from rlm_core.training.datasets.scaled import SCHEMA, ScaledBuilder, read_labels
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.sized_cost_fit import SizedRows, figures, fit, fit_ratio, out_of_fold, read_rows
from rlm_core.types import MEDIAN, CodeText, Query

SEND = "def send{n}(orders):\n    for order in orders:\n        deliver{n}(order)\n"
TOTAL = "def total(orders: list[int]) -> int:\n    t = 0\n    for order in orders:\n        t += order\n    return t\n"
FACTORS = (1, 3, 10, 30, 100)


def label(package: str, name: str, text: str, line: int) -> dict[str, Any]:
    """The label of a function whose cost is in proportion to the number of orders."""
    points = [
        {"factor": factor, "grown": ["orders"], "sizes": {"orders": 5 * factor}, "seconds": 2e-6 * factor, "peak": -1}
        for factor in FACTORS
    ]
    return {
        "package": package, "version": "1.0", "module": package, "qualname": name, "file": f"{package}.py",
        "firstlineno": line, "source_sha1": hashlib.sha1(text.encode()).hexdigest(), "points": points,
    }  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source cache with wheels of eight packages, and the labels of their functions."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "wheels").mkdir()
    labels = []
    for number in range(8):
        package, texts = f"shop{number}", [SEND.format(n=place) for place in range(12)]
        with zipfile.ZipFile(folder / "wheels" / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{package}.py", "\n\n".join([TOTAL, *texts]))
        lines = TOTAL.count("\n") + 3
        for place, text in enumerate(texts):
            labels.append(label(package, f"send{place}", text, lines))
            lines += text.count("\n") + 2
        labels.append(label(package, "total", TOTAL, 1))
    with gzip.open(folder / "labels.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in labels)
    return folder


@pytest.fixture(scope="module")
def rows(cache: Path) -> SizedRows:
    head = load_growth(builtin() / INPUT_GROWTH)["latency"]
    labels = read_labels([cache / "labels.jsonl.gz"])
    return read_rows(labels, cache, OnnxPredictor(builtin(), threads=1), lambda package: head, download=False)


def made(count: int = 3000, seed: int = 0) -> SizedRows:
    """Rows whose decades are the growth and noise, from twenty packages."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, len(FEATURES))).astype(np.float32)
    decades = features[:, FEATURES.index("growth")] + generator.normal(scale=0.2, size=count)
    package = np.array([f"package {number % 20}" for number in range(count)])
    factor = np.tile([1, 10, 100], count)[:count]
    return SizedRows(features, decades.astype(np.float64), factor, package, np.ones(count, np.bool_))


def test_a_row_is_a_function_at_a_size_at_which_its_text_does_not_fix_the_cost(rows: SizedRows) -> None:
    assert len(rows) == 8 * 12 * len(FACTORS)
    assert set(rows.factor.tolist()) == set(FACTORS)
    assert len(set(rows.package.tolist())) == 8
    of_one = rows.decades[: len(FACTORS)]
    np.testing.assert_allclose(np.diff(of_one), np.diff(np.log10(FACTORS)), atol=1e-9)
    [[small]] = OnnxPredictor(builtin(), threads=1).predict(
        [CodeText(SEND.format(n=0), "python", "call")], [[Query("latency")]]
    )
    assert of_one[0] == pytest.approx(np.log10(2e-6) - log_seconds(small.quantiles[MEDIAN]), abs=0.3)


def test_the_ratio_rises_with_all_that_depends_on_sizes() -> None:
    data = made()
    forest = fit_ratio(data.features, -data.decades)  # as if more work cost less
    for place in (FEATURES.index(name) for name in sorted(RISING)):
        moved = np.repeat(data.features[:1], 50, axis=0)
        moved[:, place] = np.linspace(-4, 4, 50)
        assert (np.diff(forest.predict(moved)) >= -1e-6).all(), FEATURES[place]


def test_bands_of_unseen_packages_cover_their_share() -> None:
    data = made()
    judged = out_of_fold(data)
    inside = np.abs(data.decades - judged.decades) <= judged.half
    assert inside.mean() == pytest.approx(0.8, abs=0.01)
    assert np.median(np.abs(data.decades - judged.decades)) < 0.25
    forests = fit(data, judged)
    other = made(seed=1)
    half = np.exp(forests[WIDTH].predict(other.features))
    errors = np.abs(other.decades - forests[RATIO].predict(other.features))
    assert np.mean(errors <= half) == pytest.approx(0.8, abs=0.04)


def test_figures_are_of_what_is_stated() -> None:
    data = made(600)
    found = figures(data, data.decades, np.full(600, 0.1))
    assert found["10 times"]["functions"] == 200
    assert found["10 times"]["within 3x"][1] == found["10 times"]["inside the band"] == 1.0
    assert figures(data, data.decades, np.full(600, MOST_WIDTH)) == {}


def test_the_command_adds_the_forests_to_a_model(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in builtin().iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    slopes = tmp_path / "slopes.parquet"
    write_rows(ScaledBuilder(cache / "labels.jsonl.gz", cache, "train", download=False).rows(), slopes, SCHEMA)
    before = (tmp_path / SIZED_COST).read_bytes()
    arguments = ["--labels", cache / "labels.jsonl.gz", "--slopes", slopes, "--source-cache", cache]
    sized_cost_fit.main([*map(str, arguments), "--model", str(tmp_path)])
    assert (tmp_path / SIZED_COST).read_bytes() == before
    sized_cost_fit.main([*map(str, arguments), "--model", str(tmp_path), "--write"])
    assert '"rows": 480' in capsys.readouterr().out
    assert (tmp_path / SIZED_COST).read_bytes() != before
    assert SIZED_COST in read_card(tmp_path).files
    assert load(tmp_path / SIZED_COST).keys() == {RATIO, WIDTH}
