"""First predictions of functions whose package the ridge has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core.training.tuning.first_pass import _ridge
from scipy import sparse

pytestmark = pytest.mark.extras


def test_conjugate_gradients_find_the_weights_of_the_ridge() -> None:
    generator = np.random.default_rng(0)
    matrix, target = generator.normal(size=(80, 10)).astype(np.float32), generator.normal(size=80)
    exact = np.linalg.solve(matrix.T @ matrix + 3.0 * np.eye(10), matrix.T @ target)
    assert _ridge(sparse.csr_matrix(matrix), target) == pytest.approx(exact, abs=0.01)
