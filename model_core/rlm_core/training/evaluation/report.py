"""The report of an evaluation: dataclasses for JSON, ``str(report)`` as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .baselines import MAIN
from .figures import BANDS, RANKS
from .markdown import dropped, factor, figure, percent, plain, table
from .metrics import Figure
from .pairs import PairReport

MODEL = "model"
STATED = 0.8
MIN_ROWS, MIN_GROUPS = 30, 10


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One basis x language x metric x what was held out: figures by predictor, ``model`` first.

    ``setting`` is empty for the whole slice, else the device (networks: space with device or data set) it is about.
    ``n`` rows were scored of ``available`` in the data; the model abstained from ``abstained`` others.
    """

    basis: str
    language: str
    metric: str
    held_out: str
    setting: str
    n: int
    available: int
    abstained: int
    groups: int
    figures: Mapping[str, Mapping[str, Figure]]

    @property
    def name(self) -> str:
        """Basis/language/metric."""
        return f"{self.basis}/{self.language}/{self.metric}"


def large_enough(rows: int, groups: int) -> bool:
    """Whether a device or language says anything by itself."""
    return rows >= MIN_ROWS and groups >= MIN_GROUPS


@dataclass(frozen=True, slots=True)
class MeanReport:
    """The mean over languages of one figure of programs, by predictor."""

    metric: str
    figure: str
    languages: Sequence[str]
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """How well 80 % bands keep their word in a basis.

    Of ``reported`` slices and settings of ``MIN_ROWS`` and ``MIN_GROUPS`` or more, the bootstrap interval of
    ``holding`` holds 80 %; ``outside`` names the others. ``pooled`` is the coverage of all rows. Of ``compared`` slices
    the model's median band is narrower than the main baseline's in ``narrower``.
    """

    basis: str
    reported: int
    holding: int
    pooled: Figure
    compared: int
    narrower: int
    outside: Sequence[str]


@dataclass(frozen=True, slots=True)
class Report:
    """One evaluation; ``abstained`` counts rows by basis and reason, ``most`` is the limit a slice and device."""

    model: str
    split: str
    most: int
    slices: Sequence[SliceReport]
    means: Sequence[MeanReport]
    coverage: Sequence[CoverageReport]
    pairs: Sequence[PairReport]
    abstained: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        parts = [f"model {self.model}, split {self.split}", *self.sampled()]
        for basis in self.bases():
            parts += [f"{basis}:", self.ranks(basis), self.bands(basis), self.settings(basis)]
        parts += [self.mean_table(), self.coverage_table(), self.pair_table(), *self.abstentions()]
        return "\n\n".join(part for part in parts if part)

    def bases(self) -> list[str]:
        """The bases that there are slices of, in the order of their pages."""
        return [basis for basis in MAIN if any(entry.basis == basis for entry in self.slices)]

    def whole(self, basis: str) -> list[SliceReport]:
        """The slices of a basis, without their settings."""
        return [entry for entry in self.slices if entry.basis == basis and not entry.setting]

    def sampled(self) -> list[str]:
        """A line where not all rows were scored."""
        names = [
            f"{entry.name} of unseen {entry.held_out} ({entry.n + entry.abstained:,} of {entry.available:,} rows)"
            for entry in self.slices
            if not entry.setting and entry.n + entry.abstained < entry.available
        ]
        return (
            [f"a seeded sample of at most {self.most:,} rows a slice and device: {', '.join(names)}"] if names else []
        )

    def ranks(self, basis: str) -> str:
        """Rank correlations and errors of all predictors, one table a basis."""
        lines = [["slice", "unseen", "predictor", "rows", "groups", *RANKS.values()]]
        for entry in self.whole(basis):
            for name, found in entry.figures.items():
                lines.append(
                    [
                        f"{entry.language} {entry.metric}",
                        entry.held_out,
                        name,
                        f"{entry.n:,}",
                        f"{entry.groups:,}",
                        *(figure(found.get(key)) for key in RANKS),
                    ]
                )
        return table(dropped(lines))

    def bands(self, basis: str) -> str:
        """Coverage and width of the bands of the model and the main baseline."""
        lines = [["slice", "unseen", "predictor", *BANDS.values()]]
        for entry in self.whole(basis):
            lines += [
                [f"{entry.language} {entry.metric}", entry.held_out, name, *_band_cells(entry.figures[name])]
                for name in (MODEL, MAIN[basis])
                if "cover80" in entry.figures.get(name, {})
            ]
        return table(dropped(lines)) if len(lines) > 1 else ""

    def settings(self, basis: str) -> str:
        """The model device by device (networks: setting by setting), beside the main baseline; empty without."""
        lines = [["metric", "device or setting", "rows", "groups", "Spearman", MAIN[basis], "Kendall", MAIN[basis]]]
        lines[0] += ["median log10 error", *list(BANDS.values())[:2]]
        for entry in self.slices:
            if entry.basis != basis or not entry.setting:
                continue
            mine, other = entry.figures[MODEL], entry.figures.get(MAIN[basis], {})
            cells = [f"{entry.language} {entry.metric}", entry.setting, f"{entry.n:,}", f"{entry.groups:,}"]
            for key in ("spearman", "kendall"):
                cells += [figure(mine.get(key)), plain(other[key].value) if key in other else ""]
            lines.append([*cells, figure(mine.get("error")), *_band_cells(mine)[:2]])
        return table(dropped(lines)) if len(lines) > 1 else ""

    def mean_table(self) -> str:
        """The means over languages of programs; empty without."""
        lines = [["programs", "figure", "languages", "predictor", "mean"]]
        for entry in self.means:
            languages = f"{len(entry.languages)}: {', '.join(entry.languages)}"
            for number, (name, found) in enumerate(entry.figures.items()):
                lines.append([entry.metric, RANKS[entry.figure], "" if number else languages, name, figure(found)])
        return table(lines) if len(lines) > 1 else ""

    def coverage_table(self) -> str:
        """The summary of 80 % bands."""
        lines = [["basis", "interval holds 80 %", "pooled coverage, %", "narrower than the baseline's", "outside"]]
        for entry in self.coverage:
            share = "no slice is large enough"
            if entry.reported:
                share = f"{entry.holding} of {entry.reported} ({percent(entry.holding / entry.reported)} %)"
            narrower = f"{entry.narrower} of {entry.compared}" if entry.compared else ""
            lines.append([entry.basis, share, figure(entry.pooled, percent), narrower, "; ".join(entry.outside)])
        return table(dropped(lines)) if len(lines) > 1 else ""

    def pair_table(self) -> str:
        """The share of right directions and what ratio bands cover, in per cent; empty without pairs."""
        names = list(dict.fromkeys(name for entry in self.pairs for name in entry.figures))
        lines = [["pairs", "metric", "language", "pairs", "groups", *names, "80 % ratio band covers", "width"]]
        for entry in self.pairs:
            cells = [entry.suite, entry.metric, entry.language, f"{entry.n:,}", f"{entry.groups:,}"]
            right = [figure(entry.figures.get(name), percent) for name in names]
            lines.append([*cells, *right, figure(entry.cover80, percent), figure(entry.width80, factor)])
        return table(lines) if len(lines) > 1 else ""

    def abstentions(self) -> Iterable[str]:
        """A line a basis and reason."""
        return [
            f"{basis}: abstained from {count:,} rows: {reason}"
            for basis, reasons in self.abstained.items()
            for reason, count in reasons.items()
        ]


def _band_cells(found: Mapping[str, Figure]) -> list[str]:
    return [figure(found.get(key), percent if key.startswith("cover") else factor) for key in BANDS]
