"""How well the growth head answers on unseen problems: ``python -m tools.experiments.growth_report``.

In: a growth data set and a model. Out: one object per language, basis and metric, for a page of the model card. The
baseline is a linear SVM on TF-IDF of token 1-2-grams, fitted per language on the same training problems.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.files import atomic_write
from rlm_core.inference import growth
from rlm_core.training.growth_fit import MISSING, GrowthRows, predictions, read_rows
from rlm_core.types import GROWTH_CLASSES
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

Numbers = npt.NDArray[np.int64]
OTHER = GROWTH_CLASSES.index("other")
# Classes one apart are neighbours; a product of two sizes grows as a square.
_ORDER = np.array([0, 1, 2, 3, 4, 5, 5, 6, 7, -9])
_LANGUAGES = {"python": "Python", "cpp": "C++", "java": "Java", "go": "Go", "typescript": "TypeScript", "rust": "Rust",
              "javascript": "JavaScript", "csharp": "C#"}  # fmt: skip
_METRICS = {"latency": "time", "memory": "space"}
_FEWEST = 30
_PAGE = """# Growth

How time and space grow with the input, for solutions of problems that the head has not seen (split `{split}`, weights
of {model}). A label is what a solution's author states, so labels differ too: two authors who solve one problem in one
language state the same class of time in 83 % of pairs, of space in 77 %.

"Within one" counts neighbours in the order 1, log n, sqrt n, n, n log n, n^2 or mn, n^3, 2^n. "Other" is everything
else, such as n^2 log n; it has no neighbours. Probability is the mean of what the head states for its answer; it
should equal the accuracy. The baseline is a linear SVM on TF-IDF of token 1-2-grams, trained per language on the same
problems.

{table}

Functions are the methods of Python solutions without their class, read with neutral names. For Python functions
[another head](function-growth.md) has replaced this one.

To make this page again:

```sh {{ .not-run reason="clones two repositories" }}
rlm-lsp data build growth --labels LABELS.jsonl.gz --out growth.parquet
python -m tools.experiments.growth_report --data growth.parquet --page docs/model-card/growth.md
```
"""


def within_one(predicted: Numbers, stated: Numbers) -> npt.NDArray[np.bool_]:
    """Return whether the class numbers of each pair are equal or adjacent."""
    comparable = (predicted != OTHER) & (stated != OTHER)
    near: npt.NDArray[np.bool_] = (predicted == stated) | (
        comparable & (np.abs(_ORDER[predicted] - _ORDER[stated]) <= 1)
    )
    return near


def report(head: growth.GrowthWeights, rows: GrowthRows, split: str = "test") -> list[dict[str, Any]]:
    """The figures of each language, basis and metric with enough rows in a split."""
    chosen = rows.of_split(split)
    table = predictions(head, rows, chosen)
    entries = []
    for basis in growth.BASES:
        for language, title in _LANGUAGES.items():
            picked = [i for i, row in enumerate(chosen) if (rows.language[row], rows.basis[row]) == (language, basis)]
            for metric, name in enumerate(growth.METRICS):
                labels = rows.labels[chosen, metric]
                known = np.array([i for i in picked if labels[i] != MISSING], np.int64)
                if len(known) < _FEWEST:
                    continue
                baseline = _baseline(rows, chosen[known], language, basis, metric)
                figures = _figures(table[known, metric], labels[known], baseline)
                entries.append({"language": title, "unit": basis, "cost": _METRICS[name], **figures})
    return entries


def _figures(table: growth.Array, stated: Numbers, baseline: Numbers) -> dict[str, Any]:
    predicted = table.argmax(axis=1)
    plain = stated != OTHER
    return {
        "rows": len(stated),
        "accuracy": float(np.mean(predicted == stated)),
        "within one": float(np.mean(within_one(predicted, stated))),
        "accuracy without other": float(np.mean((predicted == stated)[plain])),
        "within one without other": float(np.mean(within_one(predicted, stated)[plain])),
        "macro F1": float(f1_score(stated, predicted, average="macro", zero_division=0)),
        "probability": float(np.mean(table.max(axis=1))),
        "largest class": float(np.bincount(stated).max() / len(stated)),
        "baseline accuracy": float(np.mean(baseline == stated)),
        "baseline within one": float(np.mean(within_one(baseline, stated))),
    }


def _baseline(rows: GrowthRows, test: Numbers, language: str, basis: str, metric: int) -> Numbers:
    """The class numbers that a linear SVM on words predicts for test rows."""
    train = [
        row
        for row in rows.of_split("train", "val")
        if (rows.language[row], rows.basis[row]) == (language, basis) and rows.labels[row, metric] != MISSING
    ]
    words = HashingVectorizer(
        tokenizer=re.compile(r"\w+|[^\w\s]").findall,
        token_pattern=None,
        ngram_range=(1, 2),
        n_features=2**18,
        alternate_sign=False,
        norm=None,
        lowercase=False,
    )
    model = make_pipeline(words, TfidfTransformer(sublinear_tf=True), LinearSVC(random_state=0))
    model.fit([rows.text[row] for row in train], rows.labels[train, metric])
    predicted: Numbers = model.predict([rows.text[row] for row in test])
    return predicted


def page(entries: Sequence[dict[str, Any]], model: str, split: str) -> str:
    """The page of the model card."""
    units = {"program": "", "call": ", functions"}
    columns = ["language", "cost", *list(entries[0])[3:]]
    lines = ["| " + " | ".join(columns) + " |", "|---|---" + "|---:" * (len(columns) - 2) + "|"]
    for entry in entries:
        cells = [f"{entry['language']}{units[entry['unit']]}", entry["cost"]]
        cells += [
            f"{value:,}" if isinstance(value, int) else f"{value:.3f}".lstrip("0") for value in list(entry.values())[3:]
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return _PAGE.format(split=split, model=model, table="\n".join(lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures as JSON, and write the page."""
    from rlm_core.inference.card import read_card
    from rlm_core.inference.model_store import builtin

    parser = argparse.ArgumentParser(description="Evaluate the growth head of a model.")
    parser.add_argument("--data", type=Path, required=True, help="data set of `rlm-lsp data build growth`")
    parser.add_argument("--model", type=Path, default=builtin(), help="directory of a model")
    parser.add_argument("--split", default="test", choices=("val", "cal", "test"))
    parser.add_argument("--page", type=Path, help="the Markdown page to write")
    options = parser.parse_args(arguments)
    rows = read_rows(options.data, ("train", "val", options.split))
    entries = report(growth.load(options.model / growth.GROWTH), rows, options.split)
    print(json.dumps(entries, indent=1))
    if options.page is not None:
        with atomic_write(options.page) as partial:
            partial.write_text(page(entries, f"`{read_card(options.model).model_id}`", options.split), encoding="utf-8")


if __name__ == "__main__":
    main()
