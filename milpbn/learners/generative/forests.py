"""Trees and forests: a maximum spanning tree, and the choice of the edges that are kept.

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
from milpbn.learners.generative.closed_form import hold_out
from milpbn.network.cpt import Cpt, fit_cpts
from milpbn.network.prior import Prior
from milpbn.problem.scores.spec import Score

#: How the number of edges is chosen; ``none`` keeps the whole tree.
PENALTIES = ("none", "bic", "aic", "aicc", "holdout")


def forest(
    data: Dataset,
    *,
    conditional: bool,
    penalty: str = "none",
    root: int = 0,
    share: float = 0.2,
    prior: Prior = Prior(),  # noqa: B008  # immutable
    control: Control = Control(),  # frozen
) -> tuple[Parents, dict[str, Any]]:
    """Return the best forest under a penalty, with the edges directed away from the root.

    Parameters
    ----------
    data : Dataset
        Training data without unknown values, whose samples count with their weights.
    conditional : bool
        True: a forest of the features given the class. False: a forest of all variables.
    penalty : {"none", "bic", "aic", "aicc", "holdout"}
        ``none`` keeps the whole tree. With ``bic``, ``aic`` and ``aicc`` the forest maximises the score of that name;
        AICc counts the parameters of the class and of all features. ``holdout`` learns a tree from one part of the
        rows and chooses the number of its heaviest edges that gives the other part the highest log-likelihood; the
        forest has this number of the heaviest edges of the tree of all rows.
    root : int
        Variable at the root of the spanning tree. All edges of the forest have the directions of this tree.
    share : float
        For ``holdout``: share of the rows held out.
    prior : Prior
        For ``holdout``: the prior of the parameters that are compared.
    control : Control
        Seed of the hold-out split; time limit and threads of the MILP for AICc.

    Returns
    -------
    parents : int64 array, shape (N,) if conditional, else (V,)
        The parent of each variable in the forest, -1 for none.
    details : dict
        The number of edges, and for AICc whether the forest is proved optimal.

    Raises
    ------
    InputError
        If there is no such penalty, AICc is undefined for all forests, or a hold-out split is impossible.
    """
    if penalty not in PENALTIES:
        raise InputError(f"There is no penalty {penalty!r}; choose one of {', '.join(PENALTIES)}.")
    terms = edge_terms(data, conditional=conditional)
    if penalty == "aicc":
        return aicc_forest(data, terms, root, control, conditional=conditional)
    if penalty in ("bic", "aic"):
        total = float(data.weights.sum())
        weights = terms.gain - Score(name=penalty).kind.local_weights(total)[1] * terms.parameters
        above = positive_forest(weights, root, MINIMAL_GAIN * total)
    else:
        above = spanning_tree(terms.gain, root)
    if penalty == "holdout":
        count = _held_out_edges(data, conditional, root, share, prior, control.random_state)
        above[_by_falling_weight(terms.gain, above)[count:]] = -1
    return above, {"edges": int(np.count_nonzero(above >= 0))}


def _by_falling_weight(weights: NDArray[np.float64], above: Parents) -> NDArray[np.int64]:
    """Return the variables that have a parent, those with the heaviest edge to it first."""
    inner = np.flatnonzero(above >= 0)
    return inner[np.argsort(-weights[inner, above[inner]], kind="stable")]


def _held_out_edges(
    data: Dataset, conditional: bool, root: int, share: float, prior: Prior, random_state: int
) -> int:
    """Return the number of heaviest edges of the tree of one part that maximises the other part's log-likelihood."""
    fit, held = hold_out(data, share, prior.smoothing, random_state)
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

    Attributes
    ----------
    penalty : {"none", "bic", "aic", "aicc", "holdout"}
        How the number of edges is chosen; see `forest`.
    root : str or None
        Variable at the root of the tree; by default the class, or the first feature if the tree is over features only.
    holdout : float
        Share of the rows held out with the penalty ``holdout``.
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
        self, data: Dataset, prior: Prior, control: Control, *, conditional: bool, root: int
    ) -> tuple[Parents, dict[str, Any]]:
        """Return the forest as `forest` does; `root` is the root if the option `root` is None.

        Raises
        ------
        InputError
            If the root is not a variable of the tree; for other reasons see `forest`.
        """
        variables = data.names[:-1] if conditional else data.names
        if self.root is not None:
            if self.root not in variables:
                raise InputError(
                    f"The root {self.root!r} is not a variable of the tree; choose one of "
                    f"{', '.join(variables[:20])}{', ...' if len(variables) > 20 else ''}."
                )
            root = variables.index(self.root)
        return forest(
            data,
            conditional=conditional,
            penalty=self.penalty,
            root=root,
            share=self.holdout,
            prior=prior,
            control=control,
        )
