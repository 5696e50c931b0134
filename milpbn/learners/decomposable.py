"""What the learners of decomposable scores share: options, the problem, and the choice of max_parents."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from milpbn.clock import SELECTION_SHARE
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, setting
from milpbn.learners.closed_form import ClosedForm, hold_out, log_joint
from milpbn.network.classifier import Classifier
from milpbn.network.structure import Structure
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.spec import GENERATIVE_SCORES, Score


@dataclass(frozen=True, kw_only=True)
class Decomposable(ClosedForm):
    """A learner that maximises a generative score over bounded parent sets.

    Attributes
    ----------
    score : {"mdl", "bic", "aic", "aicc", "bdeu", "ll"}
        What is maximised; bic is another word for mdl.
    max_parents : int
        Most parents of a variable, the class among them.
    class_parents : bool
        The class may have feature parents.
    parent_sets : {"paper", "all"}
        Parent sets of a feature: none, or sets with the class in them (P12); or all.
    ess : float
        Equivalent sample size of bdeu.
    """

    score: str = setting("mdl", "What is maximised; bic is mdl.", choices=("bic", *GENERATIVE_SCORES))
    max_parents: int = setting(2, "Most parents of a variable, the class among them.")
    class_parents: bool = setting(True, "The class may have feature parents.")
    parent_sets: str = setting(
        "paper", "Parent sets of a feature: none and those with the class, or all.", choices=("paper", "all")
    )
    ess: float = setting(1.0, "Equivalent sample size of bdeu.")

    def spec(self, max_parents: int | None = None) -> Score:
        """Return the score with all options, checked.

        Raises
        ------
        InputError
            If it is no generative score, or an option is out of range.
        """
        score = Score(
            name=self.score,
            max_parents=self.max_parents if max_parents is None else max_parents,
            class_parents=self.class_parents,
            parent_sets=self.parent_sets,
            equivalent_sample_size=self.ess,
        )
        if score.is_margin:
            raise InputError(
                f"The learner {self.name} maximises {', '.join(GENERATIVE_SCORES)}, not {score.name}; "
                "use milpbn solve for that score."
            )
        return score

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {} if self.score == "bdeu" else {"ess": f"score {self.score}"}

    def additive_spec(self, max_parents: int | None = None) -> Score:
        """Return the score as `spec` does, and refuse AICc, which is no sum over the variables."""
        score = self.spec(max_parents)
        if score.name == "aicc":
            raise InputError(
                f"AICc is not a sum over the variables, so that {self.name} cannot maximise it; use the learner exact, "
                "or the score aic."
            )
        return score


def problem_of(data: Dataset, score: Score, control: Control) -> Problem:
    """Return the candidate sets of all variables with their local scores.

    Raises
    ------
    NoIncumbentError
        If the time limit ends before all are computed.
    InputError
        If there are too many candidate sets for the machine's memory.
    """
    deadline = None if control.time_limit is None else time.monotonic() + control.time_limit
    control.report(
        f"scoring the parent sets of {data.n_variables} variables, max_parents {score.max_parents}"
    )
    problem = build_problem(data, score, for_milp=False, deadline=deadline)
    control.report(f"{problem.candidates.n_sets} parent sets are scored")
    return problem


def choose_max_parents(
    learn: Callable[[Dataset, int, Control], Structure],
    data: Dataset,
    most: int,
    share: float,
    smoothing: float,
    control: Control,
) -> tuple[int, dict[str, Any]]:
    """Return the max_parents whose structures predict held-out rows best, by their log-likelihood.

    Parameters
    ----------
    learn : callable
        From data and max_parents to a structure, in the time that the control allows.
    data : Dataset
        Training data.
    most : int
        Numbers 1 to this are tried; of equal ones the smallest wins.
    share : float
        Share of the rows held out, in (0, 1); 0 chooses `most` without a look at the data.
    smoothing : float
        Laplace constant of the parameters that are compared, above 0.
    control : Control
        Seed of the split, and who is told. All numbers together get a share of the time.

    Returns
    -------
    max_parents : int
        The choice.
    details : dict
        The mean held-out log-likelihood per unit of weight, in nats, by max_parents.

    Raises
    ------
    InputError
        As `hold_out`.
    """
    if share == 0:
        return most, {}
    fit, held = hold_out(data, share, smoothing, control.random_state)
    values: dict[int, float] = {}
    counts = range(1, max(1, min(most, data.n_features)) + 1)
    each = control
    if control.time_limit is not None:
        each = replace(control, time_limit=SELECTION_SHARE * control.time_limit / len(counts))
    for count in counts:
        classifier = Classifier.fit(fit, learn(fit, count, each), smoothing)
        values[count] = log_joint(held, classifier) / float(held.weights.sum())
        control.report(f"max_parents {count}: {values[count]:.6f} nats per held-out row")
    best = 1 + int(np.argmax(list(values.values())))
    return best, {"max_parents": best, "held_out": {str(k): v for k, v in values.items()}}
