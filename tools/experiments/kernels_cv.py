"""How kernels are answered, as the product does it: five folds by kernel, ranks and the 80 % band.

    python -m tools.experiments.kernels_cv --data triton.parquet --config configs/student.toml

Everything, bands included, is fitted without the kernels of a fold. Prints Spearman pooled, between kernels (medians)
and within kernels (mean of those with five rows), coverage and width of the band, pooled and the mean of kernels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rlm_core.inference.residuals import spread_key
from rlm_core.training.corpus import load_corpus
from rlm_core.training.student.config import load_config
from rlm_core.training.student.trees_fit import fit_trees, log_values
from rlm_core.types import LEVELS
from scipy.stats import spearmanr
from sklearn.model_selection import GroupKFold

from tools.experiments.resplit import resplit

_SLICE = "kernel/triton/latency"


def main() -> None:
    """Run the cross-validation and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.data, tasks=[_SLICE])
    rows = corpus.rows
    target = log_values(corpus, np.arange(len(rows)), _SLICE)
    found, low, high = np.zeros((3, len(rows)))
    for train, test in GroupKFold(5).split(rows.group, groups=rows.group):
        split = np.full(len(rows), "train")
        split[test] = "test"
        fitted = fit_trees(resplit(corpus, split), load_config(arguments.config).trees)
        assert spread_key(_SLICE) not in fitted.forests, "kernels are too few for a forest of sizes"
        residuals = fitted.residuals[_SLICE].quantiles
        found[test] = fitted.predictions[test]
        low[test], high[test] = (found[test] + residuals[LEVELS.index(level)] for level in (0.1, 0.9))
        print(f"{len(np.unique(rows.group[train]))} kernels to fit, {len(np.unique(rows.group[test]))} to test")
    inside = (target >= low) & (target <= high)
    kernels = [np.flatnonzero(rows.group == name) for name in np.unique(rows.group)]
    medians = np.array([(np.median(found[own]), np.median(target[own])) for own in kernels])
    within = [spearmanr(found[own], target[own]).statistic for own in kernels if len(own) >= 5 and np.ptp(target[own])]
    print(f"pooled {spearmanr(found, target).statistic:.4f}, between {spearmanr(*medians.T).statistic:.4f}")
    print(f"within {np.nanmean(within):.4f} ({len(within)} kernels)")
    print(f"80 % band: {inside.mean():.4f} of the rows inside, {np.mean([inside[own].mean() for own in kernels]):.4f}")
    print(f"of a kernel's on average; {np.mean(high - low):.3f} decades wide")


if __name__ == "__main__":
    main()
