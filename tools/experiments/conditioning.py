"""The gain from other known numbers of the same network: accuracy, then latencies, on unseen NAS-Bench-201 networks.

    python -m tools.experiments.conditioning --data nas.parquet --run RUN_DIR [--epochs 6] [--share 1] \
        [--out FIGURES.json]

One full model learns CIFAR-10 accuracy and the latencies of ``DEVICES``, each number also conditioned on those before
it. Each latency of a ``test`` network is then answered from the text alone, given the accuracy, and given the accuracy
and the latencies of the devices before; the accuracy from the text alone and given that of 12 epochs. Reported:
Spearman of the medians, and the negative log-likelihood in nats of log10 of the value; intervals by bootstrap over
networks.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import rlm_core
import torch
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.full import store
from rlm_core.training.full.decoder import NumberQuery
from rlm_core.training.full.decoding import log_prob, quantiles
from rlm_core.training.full.encoders.base import encode, reading
from rlm_core.training.full.model import FullModel, TextMemory
from rlm_core.training.full.sequences import Slot
from rlm_core.training.full.train import train

TOKENIZER = (Path(rlm_core.__file__).parent / "builtin" / "tokenizer.model").as_posix()
DEVICES = ("pixel-3", "raspberry-pi-4", "eyeriss", "fpga", "nvidia-gtx-1080-ti")
ACCURACIES = (
    {"dataset": "cifar10", "epochs": "12", "subset": "test"},
    {"dataset": "cifar10", "epochs": "200", "subset": "test"},
)
_BATCH = {"batch": "1"}
_CHUNK, _RESAMPLES = 64, 500
_CONFIG = """
kind = "full"
name = "nas-conditioning"
[encoder]
tokenizer = "{tokenizer}"
width = 128
layers = 3
heads = 4
hidden = 352
max_tokens = 320
[decoder]
width = 128
layers = 2
heads = 4
hidden = 352
[train]
epochs = {epochs}
tokens_per_batch = 8192
learning_rate = 2e-3
warmup_steps = 50
group_power = 1.0
rows_per_text = 7
numbers_per_sequence = 7
order = "accuracy, latency"
precision = "float32"
validation_rows = 600
"""
Array = npt.NDArray[np.float64]
Key = tuple[str, str, tuple[tuple[str, str], ...]]  # metric, device, workload


def main() -> None:
    """Read the arguments, train unless the run is finished, score, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True, help="where the rows, the configuration and the model go")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--share", type=float, default=1.0, help="share of the training networks to learn from")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    run: Path = arguments.run
    run.mkdir(parents=True, exist_ok=True)
    rows, config = run / "rows.parquet", run / "config.toml"
    networks = chosen(arguments.data, rows, arguments.share)
    config.write_text(_CONFIG.format(epochs=arguments.epochs, tokenizer=TOKENIZER), encoding="utf-8")
    train([rows], config, run / "model", resume=(run / "model").exists())
    model, _ = store.load(run / "model")
    figures = score(model.eval(), networks)
    for line in figures:
        print(line)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def queries() -> list[NumberQuery]:
    """The questions in the order in which they condition each other."""
    accuracies = [NumberQuery("accuracy", "network", "onnx", None, workload) for workload in ACCURACIES]
    return accuracies + [NumberQuery("latency", "network", "onnx", device, _BATCH) for device in DEVICES]


def chosen(data: Path, out: Path, share: float) -> list[tuple[str, dict[int, float]]]:
    """Write the rows of the questions to ``out``; the test networks, each its text and values by question."""
    table = pq.read_table(data)
    columns = {name: table[name].to_pylist() for name in ("family", "metric", "device", "workload")}
    wanted = {_key(query.metric, query.device, query.workload): place for place, query in enumerate(queries())}
    place = [
        wanted.get(_key(metric, device, dict(workload)), -1) if family.startswith("nasbench201/") else -1
        for family, metric, device, workload in zip(*columns.values(), strict=True)
    ]
    drawn = np.array([zlib.crc32(text.encode()) / 2**32 < share for text in table["text"].to_pylist()])
    held_out = np.array(table["split"].to_pylist()) != "train"
    kept = np.flatnonzero((np.array(place) >= 0) & (drawn | held_out))
    table = table.take(kept)
    pq.write_table(table, out)
    networks: dict[str, dict[int, float]] = {}
    for number, row in zip(kept, table.select(["text", "value", "split"]).to_pylist(), strict=True):
        if row["split"] == "test":
            networks.setdefault(row["text"], {})[place[number]] = row["value"]
    return [(text, values) for text, values in networks.items() if len(values) == len(wanted)]


def _key(metric: str, device: str | None, workload: Mapping[str, str]) -> Key:
    return metric, device or "", tuple(sorted(workload.items()))


def score(model: FullModel, networks: list[tuple[str, dict[int, float]]]) -> list[dict[str, object]]:
    """A line for each question and each set of known numbers before it."""
    questions = queries()
    patterns: list[tuple[tuple[int, ...], int]] = [((), 1), ((0,), 1)]
    patterns += [(known, place) for place in range(2, len(questions)) for known in ((), (1,), tuple(range(1, place)))]
    patterns = list(dict.fromkeys(patterns))
    medians = np.empty((len(patterns), len(networks)))
    losses = np.empty_like(medians)
    tokens = model.encoder.tokenize([reading(text, "onnx", [], 0) for text, _ in networks]).ids
    with torch.inference_mode():
        for start in range(0, len(networks), _CHUNK):
            mine = slice(start, start + _CHUNK)
            values = [values for _, values in networks[mine]]
            memories = [TextMemory(vectors) for vectors in encode(model.encoder, tokens[mine])]
            for number, (known, place) in enumerate(patterns):
                before = [[Slot(questions[i], own[i]) for i in known] for own in values]
                medians[number, mine], losses[number, mine] = _answers(
                    model, memories, questions[place], before, [own[place] for own in values]
                )
    return [
        _line(questions, known, place, medians[number], losses[number], np.array([own[place] for _, own in networks]))
        for number, (known, place) in enumerate(patterns)
    ]


def _answers(
    model: FullModel, memories: list[TextMemory], query: NumberQuery, before: list[list[Slot]], values: list[float]
) -> tuple[Array, Array]:
    """Medians, and the negative log-likelihood in nats of log10 of the values."""
    found = quantiles(model, memories, [[[*known, Slot(query)]] for known in before], (0.5,))
    scored = log_prob(model, memories, [[[*known, Slot(query, x)]] for known, x in zip(before, values, strict=True)])
    cells = [model.config.numbers.cell(value) for value in values]
    widths = np.array([math.log10(high / low) for low, high in cells])
    medians = np.array([answer.smooth[0] for [answer] in found])
    return medians, np.log(widths) - np.array([float(one[-1]) for [one] in scored])


def _line(
    questions: list[NumberQuery], known: tuple[int, ...], place: int, medians: Array, losses: Array, values: Array
) -> dict[str, object]:
    rng = np.random.default_rng(0)
    drawn = [rng.integers(len(values), size=len(values)) for _ in range(_RESAMPLES)]
    ranks = [spearman(medians[index], values[index]) or 0.0 for index in drawn]
    means = [float(losses[index].mean()) for index in drawn]
    return {
        "asked": _name(questions[place]),
        "known": [_name(questions[i]) for i in known],
        "networks": len(values),
        "spearman": round(spearman(medians, values) or 0.0, 4),
        "spearman interval": [round(float(np.quantile(ranks, end)), 4) for end in (0.025, 0.975)],
        "nll": round(float(losses.mean()), 4),
        "nll interval": [round(float(np.quantile(means, end)), 4) for end in (0.025, 0.975)],
    }


def _name(query: NumberQuery) -> str:
    return (
        f"{query.metric} on {query.device}"
        if query.device
        else f"{query.metric} after {query.workload['epochs']} epochs"
    )


if __name__ == "__main__":
    main()
