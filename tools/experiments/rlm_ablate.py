"""How a number should leave the model: five outputs on one encoder, one task and one budget of steps.

    python -m tools.experiments.rlm_ablate --data X.parquet --slice program/python/memory --steps 400 \
        [--out FIGURES.json]

| output | what is learned |
|---|---|
| mse | the value itself, divided by the mean of the training values; squared error |
| normalised-mse | the standard score of log10 of the value; squared error |
| bins | 64 bins of log10 of the value with soft targets; cross-entropy |
| digits | number tokens under the grammar (sign, exponent, mantissa); cross-entropy |
| text | the value as written text, one character per token, without a grammar; cross-entropy |

All see the same batches of the same texts and train the same encoder, AdamW with one schedule. The last two have the
same decoder, the first three a layer on the mean of the token vectors. Reported on the ``test`` split: Spearman, the
median absolute error in log10 of the medians (for text: of 16 samples), and the negative log-likelihood in nats of
log10 of the value where the output is a distribution over it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from rlm_core.inference.calibration import Scale, fit_scale
from rlm_core.inference.tokenizer import train as train_tokenizer
from rlm_core.training.corpus import Corpus, floor_of, load_corpus
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.full.decoder import Decoder, FullConfig
from rlm_core.training.full.decoding import log_prob, quantiles
from rlm_core.training.full.encoders.base import encode
from rlm_core.training.full.encoders.scratch import ScratchConfig, ScratchEncoder
from rlm_core.training.full.model import FullModel, TextMemory
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.sequences import Slot
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.full.training_data import Examples, Plan, examples
from rlm_core.training.losses import soft_cross_entropy
from torch import Tensor, nn

Array = npt.NDArray[np.float64]
_ALPHABET = "0123456789.e-+"
_LONGEST, _SAMPLES, _CHUNK, _SIGMA = 12, 16, 64, 0.75
_TINY = 1e-12


@dataclass(frozen=True)
class Sizes:
    """Of the encoder and, where there is one, the decoder."""

    width: int
    layers: int


class Output(nn.Module, ABC):
    """The output layers on the encoder."""

    @abstractmethod
    def loss(self, vectors: Tensor, mask: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        """The mean loss of a batch: token vectors ``(texts, tokens, width)``, values ``(texts,)``, their rows."""

    @abstractmethod
    def answers(self, vectors: list[Tensor], values: Array) -> tuple[Array, Array | None]:
        """Point predictions of texts, and the negative log-likelihood of each value, if there is one."""


class Head(Output):
    """A layer on the mean of the token vectors."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.inner, self.last = nn.Linear(width, width), nn.Linear(width, outputs)

    def of(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """``(texts, outputs)``."""
        mean = (vectors * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        found: Tensor = self.last(F.gelu(self.inner(mean)))
        return found

    def all(self, vectors: list[Tensor]) -> Tensor:
        """The same for texts of any length."""
        return torch.cat([self.of(own[None], torch.ones(1, len(own), dtype=torch.bool)) for own in vectors])


class Mse(Head):
    """Squared error of the value or of its standard score."""

    def __init__(self, width: int, train: Array, normalised: bool) -> None:
        super().__init__(width, 1)
        logs = np.log10(train)
        self.normalised = normalised
        self.shift = float(logs.mean()) if normalised else 0.0
        self.scale = float(logs.std() + 1e-9 if normalised else train.mean())

    def loss(self, vectors: Tensor, mask: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        """See :class:`Output`."""
        target = (values.log10() if self.normalised else values).sub(self.shift).div(self.scale)
        return F.mse_loss(self.of(vectors, mask)[:, 0], target.float())

    def answers(self, vectors: list[Tensor], values: Array) -> tuple[Array, Array | None]:
        """See :class:`Output`."""
        found = self.all(vectors)[:, 0].double().numpy() * self.scale + self.shift
        return (10**found if self.normalised else found), None


class Bins(Head):
    """Cross-entropy over bins of log10 of the value."""

    def __init__(self, width: int, scale: Scale) -> None:
        super().__init__(width, len(scale.edges))
        self.scale = scale

    def loss(self, vectors: Tensor, mask: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        """See :class:`Output`."""
        logits = self.of(vectors, mask)
        place = torch.from_numpy(self.scale.position(values.numpy()).astype(np.float32))
        return soft_cross_entropy(logits, place, _SIGMA)

    def answers(self, vectors: list[Tensor], values: Array) -> tuple[Array, Array | None]:
        """See :class:`Output`."""
        logits = self.all(vectors).double()
        logits[:, 0] = -torch.inf  # the task has no floor
        share = logits.softmax(1).numpy()
        bins = np.clip(np.floor(self.scale.position(values)).astype(int), 0, len(self.scale.edges) - 2)
        density = share[np.arange(len(values)), bins + 1] / np.diff(self.scale.edges)[bins]
        return self.scale.quantiles(share, [0.5])[:, 0], -np.log(np.maximum(density, _TINY))


class Digits(Output):
    """The product's own: number tokens under the grammar."""

    def __init__(self, model: FullModel, data: Examples) -> None:
        super().__init__()
        self.decoder, self.query_tokens = model.decoder, model.query_tokens
        self.model = [model]  # in a list, so that its encoder is not ours
        self.data = data

    def loss(self, vectors: Tensor, mask: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        """See :class:`Output`."""
        queries = self.data.batch[torch.from_numpy(self.data.query)[rows]].view(len(rows), 1, 1)
        memory = self.decoder.remember(vectors, mask)
        return -self.model[0].log_probs(memory, queries, self.data.tokens[rows][:, None, None]).sum() / len(rows)

    def answers(self, vectors: list[Tensor], values: Array) -> tuple[Array, Array | None]:
        """See :class:`Output`."""
        model, memories = self.model[0], [TextMemory(own) for own in vectors]
        query = self.data.queries[0]
        medians = [one[0].smooth[0] for one in quantiles(model, memories, [[[Slot(query)]]] * len(memories), (0.5,))]
        scores = log_prob(model, memories, [[[Slot(query, float(value))]] for value in values])
        widths = np.array([math.log10(high / low) for low, high in map(model.config.numbers.cell, map(float, values))])
        return np.array(medians), -np.array([float(one[0][0]) for one in scores]) + np.log(widths)


class Text(Output):
    """The value as characters, by the same decoder without a grammar; the first token asks, the last one ends."""

    def __init__(self, config: FullConfig) -> None:
        super().__init__()
        self.end = len(_ALPHABET) + 1
        # Only the number of token ids matters here.
        self.decoder = Decoder(replace(config, numbers=NumberFormat(base=len(_ALPHABET) + 2)))

    def loss(self, vectors: Tensor, mask: Tensor, values: Tensor, rows: Tensor) -> Tensor:
        """See :class:`Output`."""
        written = [[_ALPHABET.index(letter) + 1 for letter in _written(value)] for value in values.tolist()]
        tokens = nn.utils.rnn.pad_sequence([torch.tensor([*row, self.end]) for row in written], batch_first=True)
        before = F.pad(tokens[:, :-1], (1, 0))
        hidden, _ = self.decoder(self.decoder.embed(before)[:, None], self.decoder.remember(vectors, mask))
        scores = self.decoder.logits(hidden[:, 0]).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        total: Tensor = (scores * (tokens > 0)).sum()
        return -total / len(tokens)

    def answers(self, vectors: list[Tensor], values: Array) -> tuple[Array, Array | None]:
        """See :class:`Output`."""
        generator = torch.Generator().manual_seed(0)
        found = []
        for own in vectors:
            memory = self.decoder.remember(own[None], None)
            tokens = torch.zeros(_SAMPLES, 1, dtype=torch.int64)
            for _ in range(_LONGEST):
                hidden, _ = self.decoder(self.decoder.embed(tokens)[None], memory)
                drawn = torch.multinomial(self.decoder.logits(hidden[0, :, -1]).softmax(-1), 1, generator=generator)
                tokens = torch.cat([tokens, drawn], 1)
            numbers = [number for row in tokens[:, 1:].tolist() if (number := self._read(row)) is not None]
            found.append(float(np.median(numbers)) if numbers else math.nan)
        return np.array(found), None

    def _read(self, row: list[int]) -> float | None:
        if self.end not in row or any(not 0 < token <= len(_ALPHABET) for token in row[: row.index(self.end)]):
            return None
        try:
            number = float("".join(_ALPHABET[token - 1] for token in row[: row.index(self.end)]))
        except ValueError:
            return None
        return number if math.isfinite(number) else None


def _written(value: float) -> str:
    return f"{value:.4g}"


def run(
    corpus: Corpus, vocabulary: int, sizes: Sizes, config: ModelFitConfig, steps: int
) -> dict[str, dict[str, float]]:
    """The figures of every output."""
    read = [corpus.texts[i][0] for i in np.unique(corpus.rows.text[corpus.rows.split == "train"])]
    tokenizer = train_tokenizer(read, vocabulary)
    shape = ScratchConfig(sizes.width, sizes.layers, max(sizes.width // 64, 2), sizes.width * 11 // 4, 512)
    languages = tuple({name.split("/")[1] for name in corpus.tasks})
    decoder = FullConfig(
        encoder_width=sizes.width, width=sizes.width, heads=shape.heads, hidden=shape.hidden, languages=languages
    )
    figures = {}
    for name in ("mse", "normalised-mse", "bins", "digits", "text"):
        torch.manual_seed(config.seed)
        encoder = ScratchEncoder(shape, tokenizer)
        model = FullModel(decoder, encoder)
        data = examples(corpus, model, 0)
        train = data.value[data.rows_of("train")]
        output = _output(name, model, data, train)
        began = time.monotonic()
        fit(encoder, output, data, config, steps)
        figures[name] = score(encoder, output, data) | {"seconds": round(time.monotonic() - began, 1)}
        print(name, figures[name], flush=True)
    return figures


def _output(name: str, model: FullModel, data: Examples, train: Array) -> Output:
    width = model.config.encoder_width
    if name == "bins":
        return Bins(width, fit_scale(train, 0.0))
    if name == "digits":
        return Digits(model, data)
    return Text(model.config) if name == "text" else Mse(width, train, name == "normalised-mse")


def fit(encoder: ScratchEncoder, output: Output, data: Examples, config: ModelFitConfig, steps: int) -> None:
    """Train for a number of steps, the same batches for every output."""
    weights = [*encoder.parameters(), *output.parameters()]
    optimizer = torch.optim.AdamW(weights, config.learning_rate, betas=(0.9, 0.98), weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.learning_rate, total_steps=steps, pct_start=0.1)
    plan, step = Plan(data, config), 0
    encoder.train()
    while step < steps:
        for number, texts in enumerate(plan.batches(step)):
            batch = plan.batch(texts, step, number, encoder.pad_id)
            rows = torch.tensor([int(np.flatnonzero(data.text == text)[0]) for text in texts])
            loss = output.loss(encoder(batch.ids, batch.mask), batch.mask, torch.from_numpy(data.value)[rows], rows)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step == steps:
                break


def score(encoder: ScratchEncoder, output: Output, data: Examples) -> dict[str, float]:
    """Figures on the test split."""
    rows = data.rows_of("test")
    encoder.eval()
    parts: list[Array] = []
    losses: list[Array] = []
    with torch.inference_mode():
        for start in range(0, len(rows), _CHUNK):
            chosen = rows[start : start + _CHUNK]
            vectors = encode(encoder, [data.texts[i] for i in data.text[chosen]])
            found, loss = output.answers(vectors, data.value[chosen])
            parts.append(found)
            losses += [loss] if loss is not None else []
    medians, values = np.concatenate(parts), data.value[rows]
    known = np.isfinite(medians)
    errors = np.abs(np.log10(np.maximum(medians[known], _TINY)) - np.log10(values[known]))
    figures = {
        "rows": float(len(rows)),
        "unreadable": float((~known).sum()),
        "spearman": round(spearman(np.where(known, medians, -1.0), values) or 0.0, 4),
        "median_log10_error": round(float(np.median(errors)), 4) if known.any() else math.nan,
    }
    return figures | ({"nll": round(float(np.concatenate(losses).mean()), 4)} if losses else {})


def main() -> None:
    """Read the arguments, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--slice", required=True, help="basis/language/metric")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--tokens-a-batch", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    corpus = load_corpus(arguments.data, ("train", "test"), [arguments.slice])
    resolved = np.flatnonzero(corpus.rows.value > floor_of(arguments.slice))
    corpus = replace(corpus, rows=corpus.rows.chosen(resolved))
    config = ModelFitConfig(
        tokens_per_batch=arguments.tokens_per_batch, learning_rate=1e-3, group_power=1.0, rows_per_text=1
    )
    sizes = Sizes(arguments.width, arguments.layers)
    figures = run(corpus, arguments.vocabulary, sizes, config, arguments.steps)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
