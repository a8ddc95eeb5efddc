"""The head's weights from an exported ``head.onnx``, so that a model without its training directory can be tuned.

The exporter keeps the names of all parameters but two, which it folds into constants: how sharply a slice's base is
drawn to the wide prediction, and how much the deep part's evidence counts in it. Logits are linear in both, so they
are solved for from a few questions to the graph; a head that then answers otherwise than the graph is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from torch import Tensor

from rlm_core.errors import ModelError
from rlm_core.inference.encoder import open_session
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS
from rlm_core.training.student.network import Head, StudentConfig

_PROBES = 8
_TOLERANCE = 1e-3  # of a logit


def read_head(path: Path, sizes: StudentConfig) -> Head:
    """The head of an exported student as a PyTorch module in evaluation mode.

    Raises:
        ModelError: the file is not a head of these sizes.
    """
    session = open_session(path)  # says what is wrong with a file that cannot be read
    head = Head(sizes)
    found = {tensor.name: tensor for tensor in onnx.load(str(path)).graph.initializer}
    folded = {"weight", "base.precision", "prior.precision"}
    state = head.state_dict()
    for name, tensor in state.items():
        if name in folded:
            state[name] = torch.zeros_like(tensor)
        elif name not in found or tuple(found[name].dims) != tuple(tensor.shape):
            raise ModelError(f"{path}: has no weights {name} of shape {tuple(tensor.shape)}; export the model again")
        else:
            state[name] = torch.from_numpy(onnx.numpy_helper.to_array(found[name]).astype(np.float32))
    head.load_state_dict(state)
    head.eval()
    _solve(head, sizes, session, path)
    return head


def _solve(head: Head, sizes: StudentConfig, session: ort.InferenceSession, path: Path) -> None:
    """Fill in the two folded vectors."""
    generator = torch.Generator().manual_seed(0)
    count = _PROBES * sizes.slices
    slices = torch.arange(sizes.slices).repeat_interleave(_PROBES)
    inputs = {
        "unit": torch.randn(count, sizes.width, generator=generator),
        "callees": torch.randn(count, 4 * sizes.width, generator=generator),
        "counts": torch.randint(0, 5, (count, 2), generator=generator).float(),
        "wide": torch.rand(count, generator=generator) * (sizes.outcomes - 1),
        "facts": 4 * torch.rand(count, FACTS, generator=generator),
        "slice": slices,
        "date": torch.full((count,), 2024.3),
        "query": torch.randn(count, QUERY, generator=generator),
    }
    parts = [
        session.run(None, {name: tensor[chosen].numpy() for name, tensor in inputs.items()})[0]
        for chosen in torch.arange(count).split(240)
    ]
    told = torch.from_numpy(np.concatenate(parts)).double()
    with torch.no_grad():
        known = (inputs[name] for name in ("wide", "facts", "slice", "date", "query"))
        wide, facts, _, date, query = known
        base = head.base(wide, facts, slices, date, query)
        evidence = head.deep(inputs["unit"], inputs["callees"], inputs["counts"], slices, date, query)
        evidence = evidence - head.prior(wide, facts, slices, date, query)
        drawn = -0.5 * ((head.base.outcomes[None, :] - wide[:, None]) / 8) ** 2
        for number in range(sizes.slices):
            mine = slices == number
            columns = torch.stack([evidence[mine].flatten(), drawn[mine].flatten()], dim=1).double()
            rest = (told[mine] - base[mine].double()).flatten()
            weight, precision = _least_squares(columns, rest)
            head.weight[number], head.base.precision[number] = weight, precision
        again = head(*inputs.values()).double()
    worst = float((again - told).abs().max())
    if not worst < _TOLERANCE * max(1.0, float(told.abs().max()) / 10):
        raise ModelError(f"{path}: is not the head of a student (logits differ by {worst:.3g}); export the model again")


def _least_squares(columns: Tensor, target: Tensor) -> tuple[float, float]:
    first, second = torch.linalg.lstsq(columns, target[:, None]).solution[:, 0].tolist()
    return float(first), float(second)
