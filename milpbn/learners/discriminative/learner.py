"""The common part of the discriminative structure searches: options, folds, threads, and the choice of gamma."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.discriminative.discriminative_scores import ChangingScore, Criterion
from milpbn.learners.discriminative.family_changes import Estimation, FamilyChanges
from milpbn.network.structure import Structure
from milpbn.problem.candidates import ParentSet
from milpbn.problem.scores.spec import DEFAULT_P, gamma_from_p
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.options import check_choice
from milpbn.util.threads import threads_used

#: Number of folds for cross-validated scores, and for the choice of gamma: Pernkopf, Wohlmayr & Mücke (2011, P11),
#: section 5.
FOLDS = 5
#: Values of gamma in nats for its choice. P11 states only that lambda = 1 / gamma is chosen by cross-validation.
GAMMA_GRID = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class FoundParents:
    """The result of a search: the feature parents of the N features, and the score of this structure (`Criterion`)."""

    parents: list[ParentSet]
    value: float
    stopped: bool
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class DiscriminativeLearner(Learner):
    """A search that adds feature parents to naive Bayes, with closed-form parameters (P11, section 3).

    Every feature has the class as a parent. Identical samples are merged first. A sample of weight 2 is therefore
    equivalent to two samples, which are always in the same fold of a cross-validation.
    """

    criterion: ClassVar[str]

    evaluation: str = setting(
        "train",
        "Scores on the training rows, or by 5-fold cross-validation on them (Pernkopf et al. 2011).",
        choices=("train", "cv"),
    )
    smoothing: float = setting(1.0, "Laplace constant of the parameters.")
    zero_probability: float | None = setting(
        None,
        "Maximum likelihood instead of smoothing, with this number for zero probabilities "
        "(Pernkopf et al. 2011: 1e-5).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("evaluation", self.evaluation, ("train", "cv"))
        self.estimation  # noqa: B018  # raises if a number is out of range

    @property
    def estimation(self) -> Estimation:
        """The estimation of parameters from counts."""
        return Estimation(self.smoothing, self.zero_probability)

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {} if self.zero_probability is None else {"smoothing": "a zero_probability"}

    @property
    def _criterion(self) -> Criterion:
        return Criterion(self.criterion)

    @abstractmethod
    def _search(self, score: ChangingScore, control: Control, budget: Budget) -> FoundParents:
        """Search for a structure, beginning with naive Bayes, which is the current structure of `score`."""

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Search for a structure, and fit its parameters to all data."""
        return self._learn(data, self._families(data, control), control, budget)

    def _families(self, data: Dataset, control: Control) -> FamilyChanges:
        """Return the source of the tables of changes, which depends on the data and the estimation only."""
        merged = data.merged
        fold = _fold_numbers(merged, control.random_state) if self.evaluation == "cv" else None
        with threads_used(control.n_jobs):
            return FamilyChanges(merged, self.estimation, fold, parallel=control.n_jobs > 1)

    def _learn(self, data: Dataset, families: FamilyChanges, control: Control, budget: Budget) -> Learned:
        """Search with the tables that `_families` returns, and fit the parameters."""
        with threads_used(control.n_jobs):
            score = ChangingScore(families, self._criterion)
            begin = score.value
            found = self._search(score, control, budget)
        c = data.n_features
        structure = Structure(data.names, (*((*parents, c) for parents in found.parents), ()))
        details = {
            "score": self.criterion,
            "naive_bayes_score": begin,
            "final_score": found.value,
            "arcs": sum(len(parents) for parents in found.parents),
            "evaluations": score.evaluations,
            "stopped_early": found.stopped,
            **found.details,
        }
        provenance = {"learner": {"name": self.name, **vars(self)}}
        predictor = self.estimation.classifier(data, structure, provenance)
        return Learned(predictor=predictor, structure=structure, details=details)


@dataclass(frozen=True, kw_only=True)
class MarginLearner(DiscriminativeLearner):
    """A search that maximises the margin score of P11, section 4."""

    criterion: ClassVar[str] = "mm"

    gamma: str | float = setting(
        gamma_from_p(DEFAULT_P),
        "Desired log-margin in nats, which is 1 / lambda in Pernkopf et al. (2011); cv chooses it by 5-fold "
        "cross-validation.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma != "cv":
            try:
                gamma = float(self.gamma)
            except (TypeError, ValueError):
                raise InputError(f"gamma must be a number of nats or cv, got {self.gamma!r}.") from None
            object.__setattr__(self, "gamma", gamma)
            Criterion(self.criterion, gamma)  # raises if gamma is out of range

    @property
    def _criterion(self) -> Criterion:
        return Criterion(self.criterion, float(self.gamma))

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Search with the given gamma, or with the gamma of the best accuracy (of equal ones the smallest)."""
        if self.gamma != "cv":
            learned = super()._fit(data, control, budget)
            return replace(learned, details={"gamma": self.gamma, **learned.details})
        rates, cut_short = self._rates(data, control, budget.share(SELECTION_SHARE))
        gamma = max(rates, key=lambda g: (round(rates[g], 12), -g), default=gamma_from_p(DEFAULT_P))
        if not rates:
            control.report(f"the time ended before gamma was chosen; it is {gamma:g}")
        learned = replace(self, gamma=gamma)._fit(data, control, budget)
        chosen: dict[str, Any] = {"gamma_rates": {str(g): rate for g, rate in rates.items()}}
        chosen["stopped_early"] = cut_short or learned.details["stopped_early"]
        return replace(learned, details={**learned.details, **chosen})

    def _rates(self, data: Dataset, control: Control, budget: Budget) -> tuple[dict[float, float], bool]:
        """Return the cross-validated accuracy of every gamma of the grid, and whether any search was cut short.

        With a time limit, all searches get the same time. A fold counts only if all gammas were tried on it and at
        least one search made progress. If no fold counts, the mapping is empty.
        """
        merged = data.merged
        folds = stratified_folds(merged.y, _n_folds(merged), control.random_state)
        silent = replace(control, report=lambda line: None)
        seconds = budget.left() / (len(GAMMA_GRID) * len(folds))
        right = np.zeros(len(GAMMA_GRID))
        tried, cut_short = 0.0, False
        for train, held_out in folds:
            test = merged.take(held_out)
            found = self._correct_weights(merged.take(train), test, silent, budget, seconds)
            if found is None:
                cut_short = True
                break
            right += found[0]
            cut_short = cut_short or found[1]
            tried += float(test.weights.sum())
        rates = dict(zip(GAMMA_GRID, (right / tried).tolist(), strict=True)) if tried else {}
        for gamma, rate in rates.items():
            control.report(f"gamma = {gamma:g}: accuracy {100 * rate:.2f} % in cross-validation")
        return rates, cut_short

    def _correct_weights(
        self, data: Dataset, test: Dataset, control: Control, budget: Budget, seconds: float
    ) -> tuple[list[float], bool] | None:
        """Learn from `data` with every gamma of the grid, each in so many seconds, and classify the test rows.

        Return for every gamma the weight of the test rows that are classified correctly, and whether a search was
        stopped; None if the time ends before all gammas are tried, or if no search makes progress.
        """
        if budget.over():
            return None
        families = self._families(data, control)
        weights, searched, cut_short = [], False, False
        for gamma in GAMMA_GRID:
            if budget.over():
                return None
            trial = budget.share(1.0, seconds)
            learned = replace(self, gamma=gamma)._learn(data, families, control, trial)
            right = learned.predictor.predict_codes(test) == test.y
            weights.append(float(test.weights[right].sum()))
            stopped = learned.details["stopped_early"]
            cut_short = cut_short or stopped
            searched = searched or learned.details["arcs"] > 0 or not stopped
        return (weights, cut_short) if searched else None


def _n_folds(data: Dataset) -> int:
    if data.n_samples < 2:
        raise InputError(
            f"Cross-validation needs at least two different samples; {data.name!r} has {data.n_samples}."
        )
    return min(FOLDS, data.n_samples)


def _fold_numbers(data: Dataset, random_state: int) -> NDArray[np.int32]:
    """Return the fold of every sample, int32 array, shape (M,)."""
    fold = np.empty(data.n_samples, dtype=np.int32)
    for number, (_, held_out) in enumerate(stratified_folds(data.y, _n_folds(data), random_state)):
        fold[held_out] = number
    return fold
