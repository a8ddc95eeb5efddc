"""Distance from the training texts: about 1 inside, refused with a reason far outside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference.novelty import NoveltyDetector, Region, fit_novelty_detector
from rlm_core.types import AbstentionCode
from safetensors.numpy import load_file, save_file

WIDTH = 8
Vectors = npt.NDArray[np.float32]


def cloud(rows: int, seed: int = 0, centre: float = 0.0) -> Vectors:
    """Encodings with very different spreads in different directions."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(WIDTH, WIDTH)) * np.geomspace(0.5, 3, WIDTH)
    return (rng.normal(size=(rows, WIDTH)) @ mixing + centre).astype(np.float32)


@pytest.fixture(scope="module")
def fitted() -> NoveltyDetector:
    """Two languages of one basis and one of another."""
    return fit_novelty_detector(
        {"call/python": cloud(3000), "program/go": cloud(2000, 1, 5.0), "program/c": cloud(300, 2, -5.0)},
        {"call/python": cloud(2000, 3), "program/go": cloud(2000, 4, 5.0), "program/c": cloud(50, 5, -5.0)},
    )


@pytest.mark.parametrize(("prefix", "centre"), [("call/python", 0.0), ("program/go", 5.0), ("program/c", -5.0)])
def test_training_texts_are_at_a_distance_of_about_1(fitted: NoveltyDetector, prefix: str, centre: float) -> None:
    distances = fitted.regions[prefix].distance(cloud(500, 6, centre))
    assert np.sqrt(np.mean(distances**2)) == pytest.approx(1, abs=0.1)


def test_few_texts_like_the_training_texts_are_refused(fitted: NoveltyDetector) -> None:
    refused = [fitted.reason("call/python", vector) is not None for vector in cloud(2000, 7)]
    assert 0 < np.mean(refused) < 0.02


def test_a_far_text_is_refused_with_its_distance_and_the_limit(fitted: NoveltyDetector) -> None:
    reason = fitted.reason("call/python", cloud(1)[0] + 100)
    assert reason is not None
    assert reason.code is AbstentionCode.UNLIKE_TRAINING_DATA
    assert reason.details["limit"] == f"{fitted.regions['call/python'].limit:.1f}"
    assert float(reason.details["distance"]) > float(reason.details["limit"])


def test_a_distance_just_above_the_limit_is_shown_with_enough_digits(fitted: NoveltyDetector) -> None:
    region = fitted.regions["call/python"]
    near = cloud(1)[0] + 100
    distance = float(region.distance(near[None, :])[0])
    reason = NoveltyDetector({"network/onnx": replace(region, limit=distance - 0.004)}).reason("network/onnx", near)
    assert reason is not None
    assert float(reason.details["distance"]) > float(reason.details["limit"])
    assert reason.details["basis"] == "network"


def test_a_text_of_another_language_of_the_basis_is_far(fitted: NoveltyDetector) -> None:
    assert fitted.reason("program/c", cloud(1, centre=5.0)[0]) is not None
    assert fitted.reason("program/go", cloud(1, centre=5.0)[0]) is None


def test_what_was_never_measured_is_not_refused(fitted: NoveltyDetector) -> None:
    assert fitted.reason("network/onnx", cloud(1)[0] + 1e6) is None


def test_a_language_with_few_texts_takes_the_limit_of_its_basis(fitted: NoveltyDetector) -> None:
    go, c = (fitted.regions[name] for name in ("program/go", "program/c"))
    assert c.limit == pytest.approx(go.limit, rel=0.05)
    alone = fit_novelty_detector({"program/c": cloud(300, 2)}, {"program/c": cloud(2000, 5)})
    assert np.isfinite(alone.regions["program/c"].limit)


def test_without_calibration_texts_the_training_texts_give_the_limit() -> None:
    found = fit_novelty_detector({"call/python": cloud(2000)}, {}).regions["call/python"]
    assert np.mean(found.distance(cloud(2000)) <= found.limit) == pytest.approx(0.995, abs=0.001)


@given(st.integers(0, 2**32), st.floats(1e-3, 1e3), st.integers(1, 5))
def test_distance_knows_no_unit_and_no_origin(seed: int, scale: float, rows: int) -> None:
    train, probe = cloud(400, seed % 1000), cloud(rows, seed % 997 + 1)
    first = fit_novelty_detector({"a/b": train}, {}).regions["a/b"]
    second = fit_novelty_detector({"a/b": train * scale + scale}, {}).regions["a/b"]
    np.testing.assert_allclose(second.distance(probe * scale + scale), first.distance(probe), rtol=0.02)


@given(st.floats(0, 50), st.floats(0, 50))
def test_further_out_is_a_larger_distance(near: float, far: float) -> None:
    region = Region(np.zeros(WIDTH, np.float32), np.eye(WIDTH, dtype=np.float32), 1.0)
    first, second = region.distance(np.full((2, WIDTH), [[min(near, far)], [max(near, far)]], np.float32))
    assert first <= second


def test_saved_regions_are_read_back(fitted: NoveltyDetector, tmp_path: Path) -> None:
    fitted.save(tmp_path / "distance.safetensors")
    found = NoveltyDetector.load(tmp_path / "distance.safetensors")
    assert found.regions.keys() == fitted.regions.keys()
    for prefix, region in found.regions.items():
        assert region.limit == pytest.approx(fitted.regions[prefix].limit)
        # The whitening is kept in half precision.
        probe = cloud(100, 8)
        np.testing.assert_allclose(region.distance(probe), fitted.regions[prefix].distance(probe), rtol=5e-3)


def test_regions_that_are_fitted_later_leave_the_saved_distances_of_others(
    fitted: NoveltyDetector, tmp_path: Path
) -> None:
    later = fit_novelty_detector({"program/go@boj": 3 * cloud(500, 9)}, {"program/go@boj": 3 * cloud(500, 10)}, fitted)
    NoveltyDetector({**fitted.regions, **later.regions}).save(tmp_path / "distance.safetensors")
    found = NoveltyDetector.load(tmp_path / "distance.safetensors")
    probe = cloud(100, 8)
    for prefix, region in fitted.regions.items():
        np.testing.assert_allclose(found.regions[prefix].distance(probe), region.distance(probe), rtol=5e-3)
    assert np.mean([found.reason("program/go@boj", vector) is None for vector in 3 * cloud(500, 11)]) > 0.95


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_equal_texts_are_familiar_to_themselves(rows: int, tmp_path: Path) -> None:
    vector = cloud(1)
    fit_novelty_detector({"call/python": np.repeat(vector, rows, 0)}, {}).save(tmp_path / "distance.safetensors")
    found = NoveltyDetector.load(tmp_path / "distance.safetensors")
    assert found.reason("call/python", vector[0]) is None
    assert found.reason("call/python", vector[0] + 10) is not None


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\x08\0\0\0\0\0\0\0{]      "])
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "distance.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"distance\.safetensors: missing or corrupt"):
        NoveltyDetector.load(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"call/python/limit": None},
        {"call/whiten": None},
        {"call/python/limit": np.zeros(0, np.float32)},
        {"call/whiten": np.eye(WIDTH - 1, dtype=np.float16)},
        {"call/python/mean": np.zeros((WIDTH, WIDTH), np.float32)},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(fitted: NoveltyDetector, tmp_path: Path, damage: dict[str, Any]) -> None:
    path = tmp_path / "distance.safetensors"
    fitted.save(path)
    tensors = load_file(path) | damage
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    with pytest.raises(ModelError, match=r"distance\.safetensors: missing or corrupt"):
        NoveltyDetector.load(path)
