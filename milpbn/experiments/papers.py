"""The papers that can be reproduced, by the names of the command line: P12, P11, R20 and Ihler's slides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar, cast

from milpbn.drawing.scene import stacked
from milpbn.experiments.base import Budgets
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.digits import DIGIT_LEARNERS, INTEGER_BITS
from milpbn.experiments.forests import FORESTS
from milpbn.experiments.methods import P12_METHODS
from milpbn.experiments.page import page, read_remarks, table
from milpbn.experiments.paper import Choice, Paper, Wanted
from milpbn.experiments.published import published
from milpbn.experiments.r20 import R20
from milpbn.experiments.runner import Plan, Study
from milpbn.experiments.tables import Collected, collect
from milpbn.plotting import draw_widths, save


class TablePaper(Paper):
    """A paper whose study is all of some methods on all of some data sets."""

    def studies(self, choice: Choice, wanted: Wanted) -> list[Study]:
        """Return one plan; of P12 a trial of the choice has at most 10 s, the recipe at most 600 s."""
        final = wanted.budget or self.budget
        plan = Plan(
            data=tuple(self.data[name] for name in choice.data),
            methods=choice.methods,
            parts=choice.parts,
            budgets=Budgets(selection=min(10.0, final), final=final, recipe=min(600.0, final)),
            seed=wanted.seed,
            data_dir=wanted.data_dir,
        )
        return [plan]


class P12(TablePaper):
    """Tables 1 to 3 of Peharz & Pernkopf (2012)."""

    name = "p12"
    data: ClassVar[dict[str, str]] = {name: name for name in sorted(published().accuracies)}
    methods = P12_METHODS
    more_methods = ("recipe-average",)
    budget = 1800.0

    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return the three tables beside the published ones, with the remarks of the folder."""
        return page(cast(Plan, studies[0]), store, read_remarks(folder))


class P11(TablePaper):
    """Table 1 and Figure 2 of Pernkopf, Wohlmayr & Mücke (2011)."""

    name = "p11"
    data: ClassVar[dict[str, str]] = {"usps": "usps-discretised", "mnist": "mnist-subsampled"}
    methods = tuple(DIGIT_LEARNERS)
    budget = 7200.0
    #: Table 1: accuracy and its standard deviation in percent, in the order of the methods.
    published: ClassVar[dict[str, tuple[tuple[float, float], ...]]] = {
        "mnist": ((83.73, 0.37), (91.28, 0.28), (92.28, 0.27), (92.71, 0.26), (92.63, 0.26), (93.15, 0.25)),
        "usps": ((87.10, 0.61), (91.90, 0.50), (92.40, 0.48), (95.47, 0.37), (92.70, 0.47), (95.40, 0.37)),
    }

    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return Table 1, and draw Figure 2."""
        collected = collect(cast(Plan, studies[0]), store)
        lines = [
            "# Table 1 and Figure 2 of Pernkopf, Wohlmayr & Mücke (2011)",
            "",
            "Written by `milpbn reproduce p11`. Accuracy on the test rows in percent with its standard error; below "
            "the published one. Scores by 5-fold cross-validation, zero probabilities replaced by 1e-5, gamma by "
            "cross-validation with TAN-OMI-MM. mnist: every second pixel of every second row. usps: R20's split and "
            "states; P11 has 8,000 training and 3,000 test images, and does not say how it discretises. Bits: the "
            f"fewest bits per parameter, {INTEGER_BITS} of them before the point, with at most half a point less than "
            "double precision.",
            "",
        ]
        titles = ["classifier", *(f"{name}{what}" for name in self.data for what in ("", ", bits"))]
        pictures, found = [], []
        for k, (method, title) in enumerate(DIGIT_LEARNERS.items()):
            cells = [title]
            for name in self.data:
                entry = collected.entry(self.data[name], method)
                paper = f"<br>{self.published[name][k][0]:.2f} ± {self.published[name][k][1]:.2f}"
                if entry is None:
                    cells += [f"-{paper}", ""]
                    continue
                share, rows = entry.accuracy / 100, len(entry.figures[0].correct)
                widths = entry.found[0]["widths"]
                enough = min(bits for bits, one in widths if one >= share - 0.005)
                cells += [
                    f"{100 * share:.2f} ± {100 * math.sqrt(share * (1 - share) / rows):.2f}{paper}",
                    str(enough),
                ]
                if method == "tan-omi-mm":
                    pictures.append(
                        draw_widths(widths, share, f"{name}, TAN-OMI-MM: {INTEGER_BITS} integer bits")
                    )
            found.append(cells)
        lines += table(titles, found)
        if pictures:
            save(stacked(pictures), folder / "figure-2.svg")
            lines += ["", "![Accuracy of TAN-OMI-MM over bits per parameter (P11, Figure 2)](figure-2.svg)"]
        return "\n".join(lines) + "\n"


class Slides(TablePaper):
    """Penalised trees and forests of Ihler's slides, which have no numbers, on the data sets of P12."""

    name = "slides"
    data = P12.data
    methods = tuple(forest.name for forest in FORESTS)
    budget = 600.0

    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return two tables for either learner: arcs and log-likelihood, and accuracy."""
        collected = collect(cast(Plan, studies[0]), store)
        lines = [
            "# Penalised trees and forests (Ihler's slides)",
            "",
            "Written by `milpbn reproduce slides`. The slides name these ways of choosing the number of arcs, and have "
            "no numbers. Parts of the data as in P12, smoothing 1. In every cell: arcs of the forest (the class's arcs "
            "of TAN are not counted), mean log-likelihood of a test row in nats, and accuracy in percent. `-`: not "
            "computed, or not defined.",
        ]
        for learner, title in (
            ("chow-liu", "Chow-Liu, all variables"),
            ("tan", "TAN, features given the class"),
        ):
            own = [forest for forest in FORESTS if forest.learner == learner]
            rows = [
                [data, *(self._cell(collected, data, forest.name) for forest in own)]
                for data in collected.plan.data
            ]
            titles = ["data", *(forest.penalty for forest in own)]
            lines += ["", f"## {title}", "", *table(titles, rows)]
        return "\n".join(lines) + "\n"

    def _cell(self, collected: Collected, data: str, method: str) -> str:
        entry = collected.entry(data, method)
        if entry is None:
            return "-"
        arcs, likelihood = (fmean(found[key] for found in entry.found) for key in ("arcs", "log_likelihood"))
        return f"{arcs:.1f}, {likelihood:.3f}, {entry.accuracy:.2f}"


PAPERS: dict[str, Paper] = {paper.name: paper for paper in (P12(), P11(), R20(), Slides())}
