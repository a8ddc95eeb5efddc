"""``rlm-lsp train --teacher``: a student that learns from a teacher's distributions and from the labels.

The teacher answers the training rows of the texts that some epoch reads, and unlabelled texts where some are given. Its
calibrated quantiles become a distribution over the student's outcomes, which is mixed with the soft target of the
label; an unlabelled text has the teacher's alone. Encoder and deep head learn from these targets; the last stages of
the student's training use labels alone, as without a teacher. The answers are kept in ``teacher.parquet``: the teacher
runs once.

The table ``[distill]`` of the student's configuration:

weight       share of the teacher in the target of a labelled row
unlabelled   the most unlabelled texts that are used, a random choice
seed         of that choice
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tqdm import tqdm

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.inference.calibration import Scale
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import TOKENIZER
from rlm_core.inference.tokenizer import Tokenizer, crop
from rlm_core.queries.query_vector import decimal_year, task_name, task_parts
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, Rows
from rlm_core.training.datasets.texts import read_texts
from rlm_core.training.losses import Teacher
from rlm_core.training.runs import say
from rlm_core.types import LEVELS, Callee, CodeText, Query

from .batches import EncoderData, HeadInputs, Sampler, head_inputs
from .config import TrainConfig, load_config, read_toml, typed
from .train import train

ANSWERS = "teacher.parquet"
_SCHEMA = pa.schema([("key", pa.string()), ("quantiles", pa.list_(pa.float64()))])
_BATCH, _KEPT_BATCHES = 256, 8
Array = npt.NDArray[np.float64]
Question = tuple[CodeText, Query]


@dataclass(frozen=True, slots=True)
class DistillConfig:
    """The weight of the teacher; see the module."""

    weight: float = 0.5
    unlabelled: int = 20_000
    seed: int = 0


def distill(
    teacher: Predictor,
    data: Sequence[Path],
    config: Path | None,
    out: Path,
    *,
    texts: Sequence[Path] = (),
    resume: bool = False,
) -> None:
    """Train a student on data sets and a teacher.

    Args:
        teacher: a full model, or the client of a model server.
        data: Parquet files of ``rlm-lsp data build``.
        config: the student's configuration, None for its defaults.
        out: where checkpoints, the log and the trained student go.
        texts: files of unlabelled texts (``rlm-lsp data build texts``), to pretrain on and to ask the teacher about.
        resume: continue from the checkpoint in ``out``.

    Raises:
        DataError: unusable data or configuration, or ``out`` holds a run of something else.
        ModelError: the teacher cannot answer.
    """
    settings = load_config(config) if config is not None else TrainConfig()
    own = read_toml(config).get("distill", {}) if config is not None else {}
    if not isinstance(own, dict):
        raise DataError(f"{config}: [distill] must be a table")
    wanted = typed(DistillConfig, own, f"{config}: [distill]")
    if not 0 <= wanted.weight <= 1:
        raise DataError(f"{config}: [distill]: weight must lie within 0..1")
    unlabelled = list(dict.fromkeys(entry for path in texts for entry in read_texts(path)))
    train(data, settings, out, texts=texts, resume=resume, teaching=Distilling(teacher, wanted, unlabelled))


class Distilling:
    """A teacher for :func:`rlm_core.training.student.train.train`.

    Args:
        teacher: any predictor.
        config: how much it counts.
        unlabelled: (text, language) pairs to ask it about besides the training rows.
    """

    def __init__(self, teacher: Predictor, config: DistillConfig, unlabelled: Sequence[tuple[str, str]] = ()) -> None:
        self.teacher, self.config, self.unlabelled = teacher, config, unlabelled
        self.name = f"{teacher.model_id}, weight {config.weight}, {len(unlabelled)} texts"

    def extended(
        self, task: EncoderData, corpus: Corpus, scales: list[Scale], settings: TrainConfig, out: Path
    ) -> EncoderData:
        """The task with the teacher's targets and the unlabelled texts; rows it does not answer keep their label's."""
        more = self._unlabelled(corpus)
        questions = [_question(more, row) for row in range(len(more.rows))]
        fresh = self._answers(questions, out / ANSWERS)
        kept = np.array([bool(fresh[key_of(question)]) for question in questions], bool)
        more = Corpus(more.texts, more.queries, more.rows.chosen(np.flatnonzero(kept)), more.tasks)
        task = _joined(task, more, settings, out)
        labelled = len(corpus.rows)
        read = Sampler(task, settings.train).read()
        questions = [_question(*((corpus, row) if row < labelled else (more, row - labelled))) for row in read.tolist()]
        found = self._answers(questions, out / ANSWERS)
        answers = [found[key_of(question)] for question in questions]
        known = np.array([bool(answer) for answer in answers], bool)
        say(f"{self.teacher.model_id} answers {known.sum()} of {len(known)} questions")
        rows = read[known]
        values = np.array([answer for answer in answers if answer]).reshape(-1, len(LEVELS))
        slices = task.inputs.task.numpy()[rows]
        targets = torch.zeros(len(task.split), settings.model.outcomes, dtype=torch.float16)
        for number, scale in enumerate(scales):
            mine = slices == number
            targets[torch.from_numpy(rows[mine])] = torch.from_numpy(masses_of(values[mine], scale)).to(torch.float16)
        weight = torch.zeros(len(task.split))
        weight[torch.from_numpy(rows)] = self.config.weight
        weight[labelled:] = 1.0
        return replace(task, teacher=Teacher(targets, weight))

    def _unlabelled(self, corpus: Corpus) -> Corpus:
        """The unlabelled texts with the default queries of the basis that most training rows of their language have."""
        train_rows = corpus.rows.split == "train"
        counts = Counter(corpus.tasks[number].rpartition("/")[0] for number in corpus.rows.task[train_rows])
        basis_of: dict[str, str] = {}
        for prefix, _ in counts.most_common():
            basis, language = prefix.split("/")
            basis_of.setdefault(language, basis)
        known = {text for text, _ in corpus.texts}
        forms = {own: corpus.forms.get(f"{basis}/{own}", CanonicalForm.LINES) for own, basis in basis_of.items()}
        fresh = dict.fromkeys((canonical(text, own, forms[own]), own) for text, own in self.unlabelled if own in forms)
        texts = [entry for entry in fresh if entry[0] not in known]
        rng = np.random.default_rng(self.config.seed)
        if len(texts) > self.config.unlabelled:
            texts = [texts[i] for i in np.sort(rng.choice(len(texts), self.config.unlabelled, replace=False))]
        queries: dict[tuple[str | None, str], int] = {}
        rows: list[tuple[str, int, int, int, float]] = []
        for place, (_, language) in enumerate(texts):
            basis = basis_of[language]
            for query in self.teacher.default_queries(basis, language):  # type: ignore[arg-type]
                name = task_name(basis, language, query.metric, query.device)
                if name in corpus.tasks:
                    pair = query.device, json.dumps(dict(query.workload), sort_keys=True)
                    number = queries.setdefault(pair, len(queries))
                    date = decimal_year(query.workload)
                    rows.append((f"text/{place}", place, corpus.tasks.index(name), number, date))
        return Corpus(texts, [(device, json.loads(own)) for device, own in queries], _rows(rows, corpus), corpus.tasks)

    def _answers(self, questions: Sequence[Question], path: Path) -> dict[str, list[float]]:
        """The teacher's quantiles at ``LEVELS`` by key; none where it abstains. New ones are added to the file."""
        found = _read(path, self.teacher.model_id)
        left: dict[CodeText, dict[str, Query]] = {}
        for question in questions:
            key = key_of(question)
            if key not in found:
                left.setdefault(question[0], {})[key] = question[1]
        codes = list(left)
        if not codes:
            return found
        # `disable=None`: no bar where stderr is not a terminal.
        starts = range(0, len(codes), _BATCH)
        for number, start in enumerate(tqdm(starts, desc="asking the teacher", unit="batch", disable=None), 1):
            batch = codes[start : start + _BATCH]
            queries = [list(left[code].values()) for code in batch]
            for code, line in zip(batch, self.teacher.predict(batch, queries), strict=True):
                for key, answer in zip(left[code], line, strict=True):
                    found[key] = list(answer.quantiles)
            # A large teacher takes hours: what it has said is kept as it goes.
            if number % _KEPT_BATCHES == 0 or number == len(starts):
                self._keep(found, path)
        return found

    def _keep(self, found: dict[str, list[float]], path: Path) -> None:
        columns = [pa.array(list(found)), pa.array(list(found.values()), _SCHEMA.field("quantiles").type)]
        table = pa.Table.from_arrays(columns, schema=_SCHEMA.with_metadata({"teacher": self.teacher.model_id}))
        with atomic_write(path) as partial:
            pq.write_table(table, partial, compression="zstd")


def masses_of(quantiles: Array, scale: Scale) -> Array:
    """Quantiles at ``LEVELS`` -> probabilities of the outcomes of a scale.

    Between quantiles the probability is spread evenly in the logarithm, beyond the outermost evenly to the scale's end.

    Args:
        quantiles: ``(rows, levels)`` in SI units, rising; at or below the floor they count as outcome 0.
        scale: of the rows' task.

    Returns:
        ``(rows, outcomes)``, each row sums to 1.
    """
    result = np.zeros((len(quantiles), len(scale.edges)))
    low, high = scale.edges[0], scale.edges[-1]
    for row, own in zip(result, quantiles, strict=True):
        above = own > scale.floor
        floor_mass = max((level for level, is_above in zip(LEVELS, above, strict=True) if not is_above), default=0.0)
        logs = np.clip(np.log10(own[above]), low, high)
        # Equal quantiles are a jump; interpolation needs rising ones.
        places = np.array([low, *logs, high]) + 1e-9 * np.arange(len(logs) + 2)
        levels = np.array(
            [floor_mass, *(level for level, is_above in zip(LEVELS, above, strict=True) if is_above), 1.0]
        )
        reached = np.interp(scale.edges, places, levels)
        reached[0], reached[-1] = floor_mass, 1.0
        row[0], row[1:] = floor_mass, np.diff(reached)
    return result


def key_of(question: Question) -> str:
    """A short name of a question, the same in every run."""
    code, query = question
    callees = [(callee.text, callee.depth) for callee in code.callees]
    content = [code.text, code.language, code.basis, callees, query.metric, query.device, dict(query.workload)]
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read(path: Path, teacher: str) -> dict[str, list[float]]:
    """Former answers, if they are this teacher's."""
    if not path.exists():
        return {}
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: cannot be read ({reason}); delete it and ask the teacher again") from None
    if (table.schema.metadata or {}).get(b"teacher") != teacher.encode():
        return {}
    return dict(zip(table["key"].to_pylist(), table["quantiles"].to_pylist(), strict=True))


def _question(corpus: Corpus, row: int) -> Question:
    rows = corpus.rows
    basis, language, metric, _ = task_parts(corpus.tasks[rows.task[row]])
    callees = tuple(
        Callee(corpus.texts[i][0], level)
        for level, called in enumerate(rows.callees[row].tolist(), 1)
        for i in called
        if i >= 0
    )
    device, workload = corpus.queries[rows.query[row]]
    code = CodeText(corpus.texts[rows.text[row]][0], language, basis, callees)
    return code, Query(metric, device, workload)


def _rows(entries: list[tuple[str, int, int, int, float]], corpus: Corpus) -> Rows:
    """Rows of unlabelled texts from (group, text, slice, query, date); their value is never read."""
    count = len(entries)
    names = np.array([entry[0] for entry in entries], np.str_)
    text, task, query = (np.array([entry[i] for entry in entries], np.int64) for i in (1, 2, 3))
    callees = np.full((count, *corpus.rows.callees.shape[1:]), -1, np.int32)
    date = np.array([entry[4] for entry in entries], np.float64)
    split = np.full(count, "train")
    return Rows(names, text, task, query, np.ones(count), date, callees, names, names, split, np.zeros(count, bool))


def _joined(task: EncoderData, more: Corpus, settings: TrainConfig, out: Path) -> EncoderData:
    """The task with the texts and rows of a further corpus behind its own."""
    if not len(more.rows):
        return task
    full = more.encode(Tokenizer.load(out / TOKENIZER))
    counts = np.stack([structure(*entry) for entry in more.texts])
    lengths = np.array([len(ids) for ids in full])
    zeros = np.zeros(len(more.rows))
    added = head_inputs(more, counts, lengths, zeros, zeros)
    added = replace(added, text=added.text + len(task.ids))
    names = [entry.name for entry in fields(HeadInputs)]
    inputs = HeadInputs(*(torch.cat([getattr(task.inputs, name), getattr(added, name)]) for name in names))
    basis = np.array([name.split("/")[0] for name in more.tasks])[more.rows.task]
    return EncoderData(
        [*task.ids, *(crop(ids, settings.model.context)[0] for ids in full)],
        inputs,
        np.concatenate([task.split, more.rows.split]),
        np.concatenate([task.group, more.rows.group]),
        np.concatenate([task.basis, basis]),
    )
