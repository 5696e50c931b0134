"""Naive Bayes, tree-augmented naive Bayes (TAN), Chow-Liu tree, and forests: the choice of the edges that are kept.

With a constant penalty per parameter, the best forest is the maximum spanning tree without the edges whose weight is
not positive (Ihler's slides). The penalty of AICc depends on the number of all parameters; see
`milpbn.learners.generative.aicc_forest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.heuristics.spanning import (
    MINIMAL_GAIN,
    Parents,
    edge_terms,
    forest_structure,
    positive_forest,
    spanning_tree,
)
from milpbn.learners.base import Control, setting
from milpbn.learners.generative.aicc_forest import aicc_forest
from milpbn.learners.generative.closed_form import ClosedForm, Found, hold_out
from milpbn.network.cpt import Cpt, fit_cpts
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget

#: How the number of edges is chosen; ``none`` keeps the whole tree.
PENALTIES = ("none", "bic", "aic", "aicc", "holdout")


def _by_falling_weight(weights: NDArray[np.float64], above: Parents) -> NDArray[np.int64]:
    """Return the variables that have a parent, those with the heaviest edge to it first."""
    inner = np.flatnonzero(above >= 0)
    return inner[np.argsort(-weights[inner, above[inner]], kind="stable")]


def _held_out_edges(fit: Dataset, held: Dataset, conditional: bool, root: int, prior: Prior) -> int:
    """Return the number of heaviest edges of the tree of one part that maximises the other part's log-likelihood."""
    gain = edge_terms(fit, conditional=conditional).gain
    above = spanning_tree(gain, root)
    without = forest_structure(fit, np.full_like(above, -1), conditional=conditional)
    tree = fit_cpts(fit, forest_structure(fit, above, conditional=conditional), *prior)
    bare = fit_cpts(fit, without, *prior)
    # An edge changes the factor of its child only, independently of the other edges.
    changes = [
        _log_factor(held, tree[i]) - _log_factor(held, bare[i]) for i in _by_falling_weight(gain, above)
    ]
    return int(np.argmax(np.concatenate([[0.0], np.cumsum(changes)])))


def _log_factor(data: Dataset, cpt: Cpt) -> float:
    """Return one variable's contribution to the log-likelihood of the data, in nats."""
    columns = tuple(data.codes[:, j] for j in (*cpt.parents, cpt.variable))
    return float(data.weights @ np.log(cpt.table[columns]))


@dataclass(frozen=True, kw_only=True)
class ForestOptions:
    """Options of the learners of trees and forests.

    The penalty ``none`` keeps the whole tree. With ``bic``, ``aic`` and ``aicc`` the forest maximises the score of that
    name; AICc counts the parameters of the class and of all features. ``holdout`` learns a tree from one part of the
    rows and chooses the number of its heaviest edges that gives the other part the highest log-likelihood; the forest
    has this number of the heaviest edges of the tree of all rows.
    """

    penalty: str = setting("none", "How the number of edges is chosen.", choices=PENALTIES)
    root: str | None = setting(
        None,
        "Variable at the root; by default the class, or the first feature for a tree of features.",
        takes="variable",
    )
    holdout: float = setting(0.2, "Share of the rows held out with --penalty holdout.")

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {} if self.penalty == "holdout" else {"holdout": f"penalty {self.penalty}"}

    def grow(
        self, data: Dataset, prior: Prior, control: Control, budget: Budget, *, conditional: bool, root: int
    ) -> tuple[Parents, dict[str, Any]]:
        """Return the best forest under the penalty, with the edges directed away from the root.

        Parameters
        ----------
        prior : Prior
            For ``holdout``: the prior of the parameters that are compared.
        conditional : bool
            True: a forest of the features given the class. False: a forest of all variables.
        root : int
            The root of the spanning tree if the option `root` is None.

        Returns
        -------
        parents : int64 array, shape (N,) if conditional, else (V,)
            The parent of each variable in the forest, -1 for none.
        details : dict
            The number of edges, and for AICc whether the forest is proved optimal.

        Raises
        ------
        InputError
            If there is no such penalty or root, AICc is undefined for all forests, or a hold-out split is impossible.
        """
        variables = data.names[:-1] if conditional else data.names
        if self.root is not None:
            if self.root not in variables:
                raise InputError(
                    f"The root {self.root!r} is not a variable of the tree; choose one of "
                    f"{', '.join(variables[:20])}{', ...' if len(variables) > 20 else ''}."
                )
            root = variables.index(self.root)
        if self.penalty not in PENALTIES:
            raise InputError(f"There is no penalty {self.penalty!r}; choose one of {', '.join(PENALTIES)}.")
        terms = edge_terms(data, conditional=conditional)
        if self.penalty == "aicc":
            return aicc_forest(data, terms, root, control, budget, conditional=conditional)
        if self.penalty in ("bic", "aic"):
            total = float(data.weights.sum())
            per_parameter = Score(name=self.penalty).kind.local_weights(total)[1]
            above = positive_forest(terms.gain - per_parameter * terms.parameters, root, MINIMAL_GAIN * total)
        else:
            above = spanning_tree(terms.gain, root)
        if self.penalty == "holdout":
            fit, held = hold_out(data, self.holdout, prior.smoothing, control.random_state)
            count = _held_out_edges(fit, held, conditional, root, prior)
            above[_by_falling_weight(terms.gain, above)[count:]] = -1
        return above, {"edges": int(np.count_nonzero(above >= 0))}


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(ClosedForm):
    """Naive Bayes with Laplace-smoothed maximum-likelihood parameters."""

    name = "naive-bayes"
    summary = "Naive Bayes: the features are independent given the class."
    reference = "Friedman, Geiger & Goldszmidt 1997, section 2."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the structure of naive Bayes."""
        return Structure.naive_bayes(data.names), {}


@dataclass(frozen=True, kw_only=True)
class Tan(ForestOptions, ClosedForm):
    """TAN, or with a penalty a forest; in both cases the class is a parent of every feature."""

    name = "tan"
    summary = "Tree-augmented naive Bayes: the maximum spanning tree under conditional mutual information."
    reference = "Friedman, Geiger & Goldszmidt 1997; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(data, self.prior, control, budget, conditional=True, root=0)
        return forest_structure(data, above, conditional=True), details


@dataclass(frozen=True, kw_only=True)
class ChowLiu(ForestOptions, ClosedForm):
    """The tree over all variables, including the class, with the highest likelihood, or with a penalty a forest."""

    name = "chow-liu"
    summary = "Chow-Liu tree: the maximum spanning tree under mutual information, over all variables."
    reference = "Chow & Liu 1968; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the tree or forest."""
        label = data.n_variables - 1
        above, details = self.grow(data, self.prior, control, budget, conditional=False, root=label)
        return forest_structure(data, above, conditional=False), details
