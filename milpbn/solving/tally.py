"""Validation results of one setting of a selection, summed over splits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.result import Result
from milpbn.claims.selection import Trial
from milpbn.data import Dataset, Table
from milpbn.network.calibration import LARGEST_LOSS
from milpbn.network.classifier import Classifier
from milpbn.network.discrimination import LEADING
from milpbn.network.evaluation import rarest
from milpbn.network.intervals import equal
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score
from milpbn.solving.grid import PARAMETERS, Setting
from milpbn.solving.options import Options
from milpbn.trials.judged import Judged


@dataclass
class Sums:
    """Validation results of one kind of parameters, summed over the splits in which they were tried."""

    #: Weight of the held-out rows that are classified correctly.
    correct: float = 0.0
    #: Sum of their weighted log-losses, in nats. A class that the training rows of a split lack has the probability 0.
    loss: float = 0.0
    splits: int = 0
    #: Number of the rows that are classified correctly.
    right: int = 0
    #: Sum of the weighted costs of the decisions; None without costs.
    cost: float | None = None
    #: ROC-AUC and average precision of each split that has them.
    ranked: dict[str, list[float]] = field(default_factory=lambda: {key: [] for key in LEADING})
    #: For each split, one number per held-out row: its log-loss, its classification error (0 or 1) or its cost,
    #: whichever the settings are compared by; for a ranking, its `milpbn.network.discrimination.ClassRanking.errors`.
    rows: list[NDArray[np.float32]] = field(default_factory=list)

    def add(self, classifier: Classifier | None, held_out: Dataset, by: str = "accuracy") -> None:
        """Add a classifier's predictions of the held-out rows of a split; without one every prediction is wrong.

        ROC-AUC and average precision are computed if settings are compared `by` one of them: for many classes they take
        longer than the rest.
        """
        self.splits += 1
        if classifier is None:
            lost = {"accuracy": 1.0, "log-loss": LARGEST_LOSS}.get(by, 0.0)  # such a split has no ranking
            self.rows.append(np.full(held_out.n_samples, lost, np.float32))
            self.loss += float(held_out.weights.sum()) * LARGEST_LOSS
            self.cost = math.inf
            return
        decision, key = classifier.decision, by.replace("-", "_")
        logs = classifier.predict_log_joint(held_out)
        judged = Judged.of_logs(logs, held_out, classifier.chosen(logs))
        self.correct += float(judged.weights[judged.correct].sum())
        self.right += int(np.count_nonzero(judged.correct))
        self.loss += float(judged.weights @ judged.values["log_loss"])
        rows = judged.values["log_loss"] if by == "log-loss" else 1.0 - judged.values["test"]
        if key in LEADING:
            found = judged.rankings(rarest(held_out) if held_out.n_classes == 2 else None)
            whole = [each for each in found if each]
            for name, values in self.ranked.items():
                values += [float(np.mean([each[name].value for each in whole]))] if whole else []
            rows = np.mean([each[key].errors for each in whole] or [np.zeros(held_out.n_samples)], axis=0)
        if decision is not None:
            assert judged.probabilities is not None
            costs = decision.of_rows(held_out.y, decision.answer(judged.probabilities))
            self.cost = (self.cost or 0.0) + float(judged.weights @ costs)
            rows = costs if by == "cost" else rows
        self.rows.append(rows.astype(np.float32))

    def join(self, others: Sums) -> None:
        """Add the results of other splits."""
        self.correct += others.correct
        self.loss += others.loss
        self.splits += others.splits
        self.right += others.right
        if others.cost is not None:
            self.cost = (self.cost or 0.0) + others.cost
        self.rows += others.rows
        for key, values in others.ranked.items():
            self.ranked[key] += values

    def standard_error(
        self, other: Sums, by: str, positions: Sequence[NDArray[np.int64]], weights: NDArray[np.float64]
    ) -> float:
        """Return the standard error of the difference to another setting on the same splits, paired over rows.

        The differences of a row that several splits hold out are averaged. `weights` are those of all rows, and
        `positions` has for each split the positions of its held-out rows among them.
        """
        sums, parts = np.zeros(len(weights)), np.zeros(len(weights))
        ranked = by.replace("-", "_") in LEADING
        for own, beside, rows in zip(self.rows, other.rows, positions, strict=False):
            sums[rows] += (own - beside) * (1.0 if ranked else weights[rows])
            parts[rows] += weights[rows]
        if ranked:
            return float(np.linalg.norm(sums)) / max(1, len(self.ranked[by.replace("-", "_")]))
        mean = float(sums.sum() / parts.sum())
        return float(np.linalg.norm(sums - mean * parts) / parts.sum())


@dataclass
class Tally:
    """Validation results of one setting, summed over the splits so far.

    Results are kept by parameters, in the words of `ParameterMethod`; generative ones (``ml``) are there in every case.
    `total` and `rows` are weight and number of all held-out rows, which are `weighted` if their weights differ.
    `proved`, `arcless` and `starved` count the splits in which the structure was proved optimal, has no arcs, or is
    still that from which the search started, for lack of time. `incumbent` is the structure of the last split. `by` is
    the criterion by which settings are compared. `behind` is the difference to the best setting and its standard error;
    None before they are compared. `numbers` are the positions of the splits, after the trials of a setting are merged.
    """

    setting: Setting
    by_parameters: dict[str, Sums] = field(default_factory=lambda: {"ml": Sums()})
    total: float = 0.0
    rows: int = 0
    weighted: bool = False
    proved: int = 0
    starved: int = 0
    arcless: int = 0
    splits: int = 0
    incumbent: Structure | None = None
    by: str = "accuracy"
    behind: tuple[float, float] | None = None
    numbers: tuple[int, ...] = ()

    @property
    def best(self) -> tuple[str, Sums]:
        """The parameters with the smallest log-loss of those that all splits have tried, and their results.

        Log-losses decide even where settings are compared by accuracy: the accuracies of parameters that differ by
        little are equal, or differ by chance.
        """
        whole = {how: sums for how, sums in self.by_parameters.items() if sums.splits == self.splits}
        return min(whole.items(), key=lambda pair: round(pair[1].loss / self.total, 12))

    @property
    def trial(self) -> Trial:
        """What the results say about the setting."""
        parameters, sums = self.best
        options = dict(self.setting.options)
        if PARAMETERS in options:
            options[PARAMETERS] = parameters
        return Trial(
            self.setting.p,
            self.setting.score.max_parents,
            sums.correct / self.total,
            self.proved,
            self.splits,
            sums.loss / self.total,
            self.starved,
            options,
            sums.right / self.rows if self.weighted else None,
            self.arcless,
            **{key: float(np.mean(values)) if values else None for key, values in sums.ranked.items()},
            cost=None if sums.cost is None or math.isinf(sums.cost) else sums.cost / self.total,
            difference=None if self.behind is None else self.behind[0],
            standard_error=None if self.behind is None else self.behind[1],
        )

    def applied(self, source: Table | Dataset, options: Options) -> tuple[Score, Table | Dataset, Options]:
        """Return the score, the data and the options of a search with this setting on all training rows."""
        if self.setting.discretisation is not None and isinstance(source, Table):
            source = source.changed(discretisation=self.setting.discretisation)
        if self.setting.missing == "drop" and isinstance(source, Table):
            source = source.of_complete_rows()
        options = replace(options, parameters=self.trial.options.get(PARAMETERS, options.parameters))
        return self.setting.score, source, options

    def add(
        self,
        result: Result,
        held_out: Dataset,
        starved: bool,
        fitted: Iterable[tuple[ParameterMethod, Classifier]] = (),
    ) -> None:
        """Add the result of one split, and the predictions of its held-out rows.

        A search is `starved` if it ended at the structure that it started from, for lack of time. The classifiers that
        are `fitted` have the same structure and other parameters; if they raise `Stopped`, what came before counts.
        """
        self.total += float(held_out.weights.sum())
        self.rows += held_out.n_samples
        self.weighted |= not equal(held_out.weights)
        self.proved += int(result.optimal)
        self.starved += int(starved)
        self.arcless += int(result.structure is not None and not result.structure.arcs)
        self.splits += 1
        self.incumbent = result.structure
        network = result.classifier if isinstance(result.classifier, Classifier) else None
        self.by_parameters["ml"].add(network, held_out, self.by)
        for method, classifier in fitted:
            if method.name != "ml":
                self.by_parameters.setdefault(str(method), Sums()).add(classifier, held_out, self.by)


def merged(tallies: Sequence[Tally]) -> Tally:
    """Return the results of one setting on several splits together, in their order."""
    whole = Tally(tallies[0].setting, by=tallies[0].by)
    for tally in tallies:
        whole.total += tally.total
        whole.rows += tally.rows
        whole.weighted |= tally.weighted
        whole.proved += tally.proved
        whole.starved += tally.starved
        whole.arcless += tally.arcless
        whole.splits += tally.splits
        whole.incumbent = tally.incumbent
        for parameters, sums in tally.by_parameters.items():
            whole.by_parameters.setdefault(parameters, Sums()).join(sums)
    return whole
