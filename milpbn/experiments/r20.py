"""Roth & Pernkopf (2020, R20), Table 1 and Figures 2 and 3: random searches of the hyperparameters of hybrid losses.

An experiment draws one structure of a kind and one point of R20's hyperparameters, and trains with both learning rates.
R20 has 100 or 500 points for each of up to 75 structures. Here the experiments take the kinds in turn, each with the
next point and the next structure, until the budget of the data set is spent: a larger budget continues a smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, NamedTuple, cast

from milpbn.drawing.scene import Scene, stacked
from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.cells import Cell, KeptCells
from milpbn.experiments.images import files_hash, image_folder, part_names
from milpbn.experiments.networks import ClosedFormMethod
from milpbn.experiments.page import read_remarks, table
from milpbn.experiments.paper import Choice, Paper, Wanted, state
from milpbn.experiments.runner import Study, Task
from milpbn.learners.differentiable.learner import DifferentiableTan
from milpbn.learners.differentiable.presets import (
    BATCH_SIZES,
    LEARNING_RATES,
    Hyperparameters,
    search_one,
    search_two,
    structures,
)
from milpbn.plotting import draw_points, save

SOURCE = (
    "Roth, W., & Pernkopf, F. (2020). Differentiable TAN structure learning for Bayesian network classifiers. "
    "Probabilistic Graphical Models 2020. Table 1, Figures 2 and 3."
)
TITLES = {
    "ml nb": "NB, maximum likelihood",
    "ml tan": "Chow-Liu, maximum likelihood",
    "naive-bayes": "NB",
    "random": "TAN Random",
    "chow-liu": "Chow-Liu",
    "subset": "TAN Subset",
    "all": "TAN All",
    "heuristic": "TAN Heuristic",
}
_TABLE_1 = {
    "letter": (25.89, 15.23, 12.93, 10.66, 9.37, 8.73, 8.76, None),
    "satimage": (17.95, 11.90, 10.83, 9.83, 9.91, 9.31, 9.39, None),
    "usps": (13.11, 8.74, 4.29, 2.65, 3.42, 2.10, None, 2.27),
    "mnist": (17.34, 7.03, 4.44, 4.38, 3.65, 3.53, None, 3.29),
}
#: Table 1: the smallest test errors over all experiments in percent, by data set and kind of structure.
PUBLISHED = {
    data: {kind: error for kind, error in zip(TITLES, errors, strict=True) if error is not None}
    for data, errors in _TABLE_1.items()
}
#: The data sets by the names of R20.
DATA = {
    "letter": "letter-discretised",
    "satimage": "satimage-discretised",
    "usps": "usps-discretised",
    "mnist": "mnist-cubic",
}
#: Share of the training rows on which the choice by validation compares; R20 has none.
HELD_OUT = 0.2


@dataclass(frozen=True, kw_only=True)
class HybridRun(Method):
    """One experiment: a structure and hyperparameters, with both learning rates.

    Each is trained on all training rows for the test error, and on four fifths of them for the validation error.
    """

    structure: str
    k: int
    ordering: int
    selection: int
    lambda_: float
    gamma: float
    eta: float
    batch_size: int
    epochs: int
    rates: tuple[float, ...] = LEARNING_RATES
    held_out: float = HELD_OUT

    name = "hybrid"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Train, and return the shares of errors for every rate."""
        options = {key: value for key, value in self.options.items() if key not in ("rates", "held_out")}
        learner = DifferentiableTan(loss="hyb", **options)
        control, test = given.control(), given.part.test
        found: dict[str, Any] = {}
        for rate in self.rates:
            one = replace(learner, learning_rate=rate)
            predicted = one.fit(given.part.train, control).predictor.predict_codes(test)
            details = replace(one, validation=self.held_out).fit(given.part.train, control).details
            found[f"{rate:g}"] = {
                "test_error": float((predicted != test.y).mean()),
                "validation_error": details["validation_error"],
            }
        return {"rates": found}


@dataclass(frozen=True, kw_only=True)
class RandomSearch(Study):
    """The experiments on one data set."""

    #: A key of `DATA`.
    title: str
    #: Which kinds of structures, of `TITLES`.
    kinds: tuple[str, ...]
    #: Of a training; R20 has 500.
    epochs: int
    seed: int = 0
    data_dir: Path | None = None
    #: Number of experiments of each kind, at most.
    count: int = 100
    budget: float | None = None

    def tasks(self) -> list[Task]:
        """Return the maximum-likelihood networks, then the experiments; all folds of one are together."""
        data = DATA[self.title]
        # The files are not read into a data set here: that takes a minute for mnist.
        sha256 = files_hash(data, image_folder(data, self.data_dir))
        return [
            Task(data, part, ((Cell(data, sha256, part, m.name, m.options, self.seed, None), m),))
            for m in self._methods()
            for part in part_names(data)
        ]

    def _methods(self) -> Iterator[Method]:
        """Yield the methods; Subset is tried with every K, and every kind of Heuristic, at the same point."""
        yield from (ClosedFormMethod(learner=kind[3:]) for kind in self.kinds if kind.startswith("ml "))
        kinds = [kind for kind in self.kinds if not kind.startswith("ml ")]
        drawn = {kind: (_rounds(kind, self.title), _points(kind, self.count)) for kind in kinds}
        for number in range(self.count):
            for rounds, points in drawn.values():
                for learner in rounds[number % len(rounds)]:
                    chosen = {
                        key: getattr(learner, key) for key in ("structure", "k", "ordering", "selection")
                    }
                    yield HybridRun(
                        **chosen,
                        **vars(points[number]),
                        batch_size=BATCH_SIZES[self.title],
                        epochs=self.epochs,
                    )


def _rounds(kind: str, title: str) -> list[list[DifferentiableTan]]:
    """Return the structures of a kind, grouped by what is tried at the same point."""
    # Selections change before orderings on letter, whose Figure 3d has one ordering; elsewhere after them.
    together: dict[tuple[object, ...], list[DifferentiableTan]] = {}
    for one in structures(kind):
        place = (one.ordering, one.selection) if title == "letter" else (one.selection, one.ordering)
        together.setdefault((*place, one.k if kind == "heuristic" else 0), []).append(one)
    return [together[key] for key in sorted(together)]


def _points(kind: str, count: int) -> list[Hyperparameters]:
    """Return R20's random points for a kind; kinds with many structures have a fixed eta and larger lambdas."""
    return (search_two if kind in ("random", "subset", "heuristic") else search_one)(count)


class Experiment(NamedTuple):
    """The options of a `HybridRun`, and its shares of errors on all parts of a data set, by learning rate."""

    options: Mapping[str, Any]
    parts: Sequence[Mapping[str, Mapping[str, float]]]

    @property
    def kind(self) -> str:
        """The kind of its structure, a key of `TITLES`."""
        structure = str(self.options["structure"])
        return "heuristic" if structure.startswith("heuristic") else structure

    @property
    def error(self) -> float:
        """The smaller one of the mean test errors of the two rates in percent, as R20 reports it."""
        return min(100 * fmean(part[rate]["test_error"] for part in self.parts) for rate in self.parts[0])


def experiments(study: RandomSearch, store: KeptCells) -> list[Experiment]:
    """Return the experiments of a study that are complete."""
    found = []
    for options, tasks in groupby(study.tasks(), key=lambda task: task.cell.options):
        kept = [store.read(task.cell) for task in tasks]
        rates = [each.found["rates"] for each in kept if each is not None and "rates" in each.found]
        if len(rates) == len(kept):
            found.append(Experiment(options, rates))
    return found


def chosen_error(those: Sequence[Experiment]) -> float:
    """Return the test error of what has the smallest validation error on each part, in percent: the parts' mean."""
    parts = zip(*(one.parts for one in those), strict=True)
    runs = ([run for rates in part for run in rates.values()] for part in parts)
    return 100 * fmean(min(part, key=lambda run: run["validation_error"])["test_error"] for part in runs)


INTRODUCTION = """# Table 1 and Figures 2 and 3 of Roth & Pernkopf (2020)

{source}

Written by `milpbn reproduce r20 --epochs {epochs} --budget {budget:g}`: experiments of {epochs} epochs, until they have
taken {budget:g} s of processor time on a data set (the last line says what was spent). The paper has 500 epochs, and
100 or 500 random points of the hyperparameters for each of up to 75 structures. Here the kinds of structures take
turns, each with the next point and the next structure; Subset is tried with every K, and Heuristic with every ordering,
at the same point.

- **An experiment** is one point and one structure with both learning rates, of which the better one counts, as in the
  paper; on satimage it has five folds. One dot is one experiment.
- **best** is the smallest test error of all experiments, as the paper reports it. It is chosen by test rows.
- **validated** is the test error of the run that has the smallest validation error, on each fold: every run is trained
  a second time on four fifths of the training rows, and the other fifth decides.
- **Data:** the paper's own splits and states of letter, satimage and usps; mnist as near to the paper's as it gets
  (cubic convolution to 14 x 14 pixels, a random two thirds of all images)."""


class R20(Paper):
    """Table 1 and Figures 2 and 3 of Roth & Pernkopf (2020)."""

    name = "r20"
    data = DATA
    methods = tuple(TITLES)
    parts = ()
    budget: ClassVar[float] = 3600.0

    def studies(self, choice: Choice, wanted: Wanted) -> list[Study]:
        """Return a random search for every data set; parts cannot be chosen, because an experiment has all."""
        return [
            RandomSearch(
                title=title,
                kinds=tuple(kind for kind in choice.methods if kind in PUBLISHED[title]),
                epochs=wanted.epochs,
                seed=wanted.seed,
                data_dir=wanted.data_dir,
                budget=wanted.budget or self.budget,
            )
            for title in choice.data
        ]

    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return Table 1, and draw Figures 2 and 3."""
        searches = cast(Sequence[RandomSearch], studies)
        found = {search.title: experiments(search, store) for search in searches}
        first = searches[0]
        lines = [
            INTRODUCTION.format(source=SOURCE, epochs=first.epochs, budget=first.budget),
            "",
            "## Table 1: test errors in percent",
            "",
            *table(
                ["data", "structure", "R20", "best", "validated", "experiments"],
                (row for search in searches for row in _rows(search, store, found[search.title])),
            ),
        ]
        for number, panels in (("2", list(_figure_2(found))), ("3", list(_figure_3(found)))):
            if panels:
                rows = (stacked(panels[k : k + 2], beside=True) for k in range(0, len(panels), 2))
                save(stacked(rows), folder / f"figure-{number}.svg")
                lines += [
                    "",
                    f"## Figure {number}",
                    "",
                    f"![Test errors over log10 lambda](figure-{number}.svg)",
                ]
        remarks = read_remarks(folder).strip()
        said = ["", remarks] if remarks else []
        spent = ", ".join(f"{search.title} {state(search, store).spent:.0f} s" for search in searches)
        return "\n".join([*lines, *said, "", f"Processor time: {spent}."]) + "\n"


def _rows(search: RandomSearch, store: KeptCells, found: Sequence[Experiment]) -> Iterator[list[str]]:
    """Yield the rows of Table 1 for a data set."""
    likelihood: dict[str, list[float]] = {}
    for task in search.tasks():
        if task.cell.method != HybridRun.name and (kept := store.read(task.cell)) and kept.failure is None:
            error = 100 * (1 - Figures.from_dict(kept.found["figures"]).accuracy)
            likelihood.setdefault(f"ml {task.cell.method}", []).append(error)
    for kind in search.kinds:
        own = [one for one in found if one.kind == kind]
        cells = ["-", "-", str(len(own))]
        if own:
            cells[:2] = [f"{min(one.error for one in own):.2f}", f"{chosen_error(own):.2f}"]
        elif kind in likelihood:
            cells = [f"{fmean(likelihood[kind]):.2f}", "", ""]
        published = f"{PUBLISHED[search.title][kind]:.2f}"
        yield [search.title, TITLES[kind], published, *cells]


def _panel(title: str, those: Sequence[Experiment], name: Callable[[Experiment], str]) -> Scene:
    """Return error over lambda, one dot an experiment, in a colour for each name."""
    series: dict[str, list[tuple[float, float]]] = {}
    for one in sorted(those, key=name):
        series.setdefault(name(one), []).append((math.log10(one.options["lambda_"]), one.error))
    return draw_points(series, title=title, labels=("log10 lambda", "test error (%)"), x=(0.0, 3.0))


#: The experiments of each data set.
Found = Mapping[str, Sequence[Experiment]]


def _figure_2(found: Found) -> Iterator[Scene]:
    """Yield a panel for each data set with two experiments at least: the kinds of structures."""
    for title, own in found.items():
        if len(own) > 1:
            yield _panel(f"{title}: kinds of structures", own, lambda one: TITLES[one.kind])


def _figure_3(found: Found) -> Iterator[Scene]:
    """Yield the panels of Figure 3 alike: orderings and K of Heuristic, orderings of Subset, parent subsets by K."""
    of_kind: dict[tuple[str, str], list[Experiment]] = {}
    for title, every in found.items():
        for one in every:
            of_kind.setdefault((title, one.kind), []).append(one)
    for title in ("usps", "mnist"):
        if len(own := of_kind.get((title, "heuristic"), [])) > 1:
            yield _panel(f"{title}, TAN Heuristic: orderings", own, lambda one: one.options["structure"])
            yield _panel(f"{title}, TAN Heuristic: K", own, lambda one: f"K = {one.options['k']}")
    own = [one for one in of_kind.get(("satimage", "subset"), ()) if one.options["k"] == 8]
    if len(own) > 1:
        title = "satimage, TAN Subset, K = 8: orderings"
        yield _panel(title, own, lambda one: f"ordering {one.options['ordering'] + 1}")
    for k in (2, 8):
        options = {"k": k, "ordering": 0}
        own = [one for one in of_kind.get(("letter", "subset"), ()) if options.items() <= one.options.items()]
        if len(own) > 1:
            title = f"letter, TAN Subset, one ordering, K = {k}: parent subsets"
            yield _panel(title, own, lambda one: f"subset {one.options['selection'] + 1}")
