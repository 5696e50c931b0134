"""The common part of the learners of generative scores: options, problem, and choice of max_parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.base import Control, Learned, setting
from milpbn.learners.generative.closed_form import ClosedForm, hold_out, log_joint
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.registry import ALIASES, find_score, generative_scores
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE


@dataclass(frozen=True, kw_only=True)
class Decomposable(ClosedForm):
    """A learner that maximises a generative score over bounded parent sets."""

    score: str = setting(
        "mdl", "The score to maximise; bic is the same as mdl.", choices=("bic", *generative_scores())
    )
    max_parents: int = setting(2, "Maximum number of parents of a variable, including the class.")
    class_parents: bool = setting(True, "Allow feature parents of the class.")
    parent_sets: str = setting(
        "paper",
        "Parent sets of a feature. paper: the empty set and the sets with the class. all: all sets.",
        choices=("paper", "all"),
    )
    ess: float = setting(1.0, "Equivalent sample size of bdeu.")

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn structure and parameters; the result is naive Bayes if the time ends before anything is scored."""
        try:
            return super()._fit(data, control, budget)
        except NoIncumbentError:
            structure = Structure.naive_bayes(data.names)
        control.report("the time ended before anything was scored; the result is naive Bayes")
        details = {"score": rescore(data, structure, self.spec()), "stopped_early": True}
        return self.with_parameters(data, structure, details, {"name": "naive-bayes"})

    def spec(self, max_parents: int | None = None) -> Score:
        """Return the score with all options; InputError if it is not generative, or an option is out of range."""
        score = Score(
            name=self.score,
            max_parents=self.max_parents if max_parents is None else max_parents,
            class_parents=self.class_parents,
            parent_sets=self.parent_sets,
            equivalent_sample_size=self.ess,
        )
        if score.is_margin:
            raise InputError(
                f"The learner {self.name} maximises {', '.join(generative_scores())}, not {score.name}; "
                "use milpbn solve for that score."
            )
        return score

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        kind = find_score(ALIASES.get(self.score, self.score))
        return {} if kind.takes("equivalent_sample_size") else {"ess": f"score {self.score}"}

    def additive_spec(self, max_parents: int | None = None) -> Score:
        """Return the score as `spec` does, but refuse AICc, which is not a sum over the variables."""
        score = self.spec(max_parents)
        if score.kind.shape is not Shape.LINEAR:
            raise InputError(
                f"AICc is not a sum over the variables, so {self.name} cannot maximise it; use the learner exact, "
                "or the score aic."
            )
        return score


def problem_of(
    data: Dataset, score: Score, control: Control, budget: Budget, *, dominated: bool = True
) -> Problem:
    """Return the problem with the candidate sets of all variables and their local scores, perhaps without `dominated`.

    NoIncumbentError says that the time ended before all scores were computed, InputError that the candidate sets do not
    fit into the machine's memory.
    """
    control.report(
        f"scoring the parent sets of {data.n_variables} variables, max_parents {score.max_parents}"
    )
    # Without scores there is no result, so that the caller's `interrupted` ends only the search that follows.
    own = Budget(None if budget.deadline is None else budget.left())
    problem = build_problem(data, score, for_milp=False, budget=own, dominated=dominated)
    control.report(f"{problem.candidates.n_sets} parent sets are scored")
    return problem


def choose_max_parents(
    learn: Callable[[Dataset, int, Budget], Structure],
    data: Dataset,
    learner: Decomposable,
    share: float,
    control: Control,
    budget: Budget,
) -> tuple[int, dict[str, Any]]:
    """Return the max_parents with the highest log-likelihood of held-out rows, per unit of weight and in nats.

    Parameters
    ----------
    learn : callable
        Returns a structure, given data, max_parents and a budget.
    learner : Decomposable
        The values from 1 to its `max_parents` are tried; of equally good ones the smallest is chosen. Its prior is that
        of the parameters that are compared.
    share : float
        Share of the rows held out, in (0, 1). With 0 nothing is learnt, and the choice is the learner's `max_parents`.
    budget : Budget
        That of the learner; the choice takes at most `SELECTION_SHARE` of it.

    Returns
    -------
    max_parents : int
        The choice.
    details : dict
        The choice, and for every value that log-likelihood.

    Raises
    ------
    InputError
        See `hold_out`.
    """
    most, prior = learner.max_parents, learner.prior
    if share == 0:
        return most, {}
    fit, held = hold_out(data, share, prior.smoothing, control.random_state)
    values: dict[int, float] = {}
    counts = range(1, max(1, min(most, data.n_features)) + 1)
    seconds = SELECTION_SHARE * budget.left() / len(counts)
    for count in counts:
        structure = learn(fit, count, budget.share(1.0, seconds))
        classifier = Classifier.fit(fit, structure, prior.smoothing, smoothing_towards=prior.towards)
        values[count] = log_joint(held, classifier) / float(held.weights.sum())
        control.report(f"max_parents {count}: {values[count]:.6f} nats per held-out row")
    best = 1 + int(np.argmax(list(values.values())))
    return best, {"max_parents": best, "held_out": {str(k): v for k, v in values.items()}}
