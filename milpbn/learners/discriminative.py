"""What the searches for discriminative structures share: options, folds, threads, and the choice of gamma."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.clock import SELECTION_SHARE
from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.discriminative_scores import ChangingScore, Criterion
from milpbn.learners.family_changes import Estimation, FamilyChanges
from milpbn.network.structure import Structure
from milpbn.scores.candidates import ParentSet
from milpbn.scores.spec import DEFAULT_P, gamma_from_p
from milpbn.threads import threads_used

#: Folds of the cross-validated scores and of the choice of gamma (P11, section 5).
FOLDS = 5
#: Values that gamma is chosen from, in nats. P11 says only that lambda = 1 / gamma is cross-validated.
GAMMA_GRID = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class Found:
    """What a search hands back.

    Attributes
    ----------
    parents : list of tuples of int, length N
        Every feature's feature parents.
    value : float
        Their score, see `Criterion`.
    stopped : bool
        Time or the user ended the search.
    details : dict
        What the method has to add; JSON values.
    """

    parents: list[ParentSet]
    value: float
    stopped: bool
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class DiscriminativeLearner(Learner):
    """A search over feature parents from naive Bayes, with closed-form parameters throughout (P11, section 3).

    Every feature has the class as a parent. Identical samples are merged first, so that a sample of weight 2 is the
    same as two samples: under cross-validation both are in one fold.
    """

    criterion: ClassVar[str]

    evaluation: str = setting(
        "train",
        "where scores come from: the training rows, or 5-fold cross-validation on them as in P11",
        choices=("train", "cv"),
    )
    smoothing: float = setting(1.0, "Laplace constant of the parameters")
    zero_probability: float | None = setting(
        None, "maximum likelihood instead of smoothing, with zero probabilities replaced by this (P11: 1e-5)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluation not in ("train", "cv"):
            raise InputError(f"evaluation must be 'train' or 'cv', got {self.evaluation!r}.")
        self.estimation  # noqa: B018  # checks its numbers

    @property
    def estimation(self) -> Estimation:
        """How parameters follow from counts."""
        return Estimation(self.smoothing, self.zero_probability)

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {} if self.zero_probability is None else {"smoothing": "a zero_probability"}

    @property
    def _criterion(self) -> Criterion:
        return Criterion(self.criterion)

    @abstractmethod
    def _search(self, score: ChangingScore, control: Control, stopping: Callable[[], bool]) -> Found:
        """Search from naive Bayes, which is where `score` is."""

    def _fit(self, data: Dataset, control: Control) -> Learned:
        """Search for a structure, and fit its parameters to all the data."""
        stopping = control.watch()
        return self._learn(data, self._families(data, control), control, stopping)

    def _families(self, data: Dataset, control: Control) -> FamilyChanges:
        """Return what scores of changes are computed from: it depends on the data and the estimation alone."""
        merged = data.merged
        fold = _fold_numbers(merged, control.random_state) if self.evaluation == "cv" else None
        with threads_used(control.n_jobs):
            return FamilyChanges(merged, self.estimation, fold, parallel=control.n_jobs > 1)

    def _learn(
        self, data: Dataset, families: FamilyChanges, control: Control, stopping: Callable[[], bool]
    ) -> Learned:
        """Search with what `_families` returned."""
        with threads_used(control.n_jobs):
            score = ChangingScore(families, self._criterion)
            begin = score.value
            found = self._search(score, control, stopping)
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
        options = {f.name: getattr(self, f.name) for f in fields(self)}
        provenance = {"learner": {"name": self.name, **options}}
        predictor = self.estimation.classifier(data, structure, provenance)
        return Learned(predictor=predictor, structure=structure, details=details)


@dataclass(frozen=True, kw_only=True)
class MarginLearner(DiscriminativeLearner):
    """A search that maximises the margin score, P11, section 4."""

    criterion: ClassVar[str] = "mm"

    gamma: str | float = setting(
        gamma_from_p(DEFAULT_P),
        "desired log-margin in nats, 1 / lambda of P11, or cv: by 5-fold cross-validation",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma != "cv":
            try:
                gamma = float(self.gamma)
            except (TypeError, ValueError):
                raise InputError(f"gamma must be a number of nats or cv, got {self.gamma!r}.") from None
            object.__setattr__(self, "gamma", gamma)
            Criterion(self.criterion, gamma)  # checks the number

    @property
    def _criterion(self) -> Criterion:
        return Criterion(self.criterion, float(self.gamma))

    def _fit(self, data: Dataset, control: Control) -> Learned:
        """Choose gamma if it is to be chosen, by accuracy, the smaller one of equals; then search."""
        if self.gamma != "cv":
            learned = super()._fit(data, control)
            return replace(learned, details={"gamma": self.gamma, **learned.details})
        left = control.clock()
        rates, hurried = self._rates(data, control)
        gamma = max(rates, key=lambda g: (round(rates[g], 12), -g), default=gamma_from_p(DEFAULT_P))
        if not rates:
            control.report(f"there was no time to choose gamma; it is {gamma:g}")
        learned = replace(self, gamma=gamma)._fit(data, left())
        chosen: dict[str, Any] = {"gamma_rates": {str(g): rate for g, rate in rates.items()}}
        chosen["stopped_early"] = hurried or learned.details["stopped_early"]
        return replace(learned, details={**learned.details, **chosen})

    def _rates(self, data: Dataset, control: Control) -> tuple[dict[float, float], bool]:
        """Return for every gamma of the grid the cross-validated share of samples classified correctly.

        And whether time or the user ended any of the searches for that.

        Under a time limit the folds count that all gammas were tried on, each for as long, if any search got anywhere;
        without such a fold the answer is empty.
        """
        merged = data.merged
        folds = stratified_folds(merged.y, _n_folds(merged), control.random_state)
        limit = None if control.time_limit is None else SELECTION_SHARE * control.time_limit
        selection = replace(control, report=lambda line: None, time_limit=limit)
        trial = selection
        if limit is not None:
            trial = replace(selection, time_limit=limit / (len(GAMMA_GRID) * len(folds)))
        stopping = selection.watch()
        right = np.zeros(len(GAMMA_GRID))
        tried, hurried = 0.0, False
        for train, held_out in folds:
            test = merged.take(held_out)
            found = self._hits(merged.take(train), test, trial, stopping)
            if found is None:
                hurried = True
                break
            right += found[0]
            hurried = hurried or found[1]
            tried += float(test.weights.sum())
        rates = dict(zip(GAMMA_GRID, (right / tried).tolist(), strict=True)) if tried else {}
        for gamma, rate in rates.items():
            control.report(f"gamma = {gamma:g}: accuracy {100 * rate:.2f} % in cross-validation")
        return rates, hurried

    def _hits(
        self, data: Dataset, test: Dataset, trial: Control, stopping: Callable[[], bool]
    ) -> tuple[list[float], bool] | None:
        """Return for every gamma of the grid the weight of the test rows classified correctly, learnt from `data`.

        And whether a search was stopped.
        None if there was no time for all, or for any search to get anywhere.
        """
        if stopping():
            return None
        families = self._families(data, trial)
        hits, searched, hurried = [], False, False
        for gamma in GAMMA_GRID:
            if stopping():
                return None
            learned = replace(self, gamma=gamma)._learn(data, families, trial, trial.watch())
            right = learned.predictor.predict(test) == np.array(learned.predictor.classes)[test.y]
            hits.append(float(test.weights[right].sum()))
            stopped = learned.details["stopped_early"]
            hurried = hurried or stopped
            searched = searched or learned.details["arcs"] > 0 or not stopped
        return (hits, hurried) if searched else None


def _n_folds(data: Dataset) -> int:
    if data.n_samples < 2:
        raise InputError(f"Cross-validation needs two different samples; {data.name!r} has {data.n_samples}.")
    return min(FOLDS, data.n_samples)


def _fold_numbers(data: Dataset, random_state: int) -> NDArray[np.int32]:
    """Return the fold of every sample, int32 array, shape (M,)."""
    fold = np.empty(data.n_samples, dtype=np.int32)
    for number, (_, held_out) in enumerate(stratified_folds(data.y, _n_folds(data), random_state)):
        fold[held_out] = number
    return fold
