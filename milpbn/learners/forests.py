"""Trees and forests: how many edges of a spanning tree stay, by a penalty or by held-out rows.

With a penalty per parameter the best forest is a spanning tree without the edges that do not pay (Ihler's slides).
AICc's penalty depends on the total; see `milpbn.learners.aicc_forest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.aicc_forest import aicc_forest
from milpbn.learners.base import Control, setting
from milpbn.learners.closed_form import hold_out
from milpbn.learners.spanning import (
    MINIMAL_GAIN,
    Parents,
    edge_terms,
    forest_structure,
    positive_forest,
    spanning_tree,
)
from milpbn.network.cpt import Cpt, fit_cpts
from milpbn.scores.spec import Score

#: How the number of edges is chosen; ``none`` takes a whole tree.
PENALTIES = ("none", "bic", "aic", "aicc", "holdout")


def forest(
    data: Dataset,
    *,
    conditional: bool,
    penalty: str = "none",
    root: int = 0,
    share: float = 0.2,
    smoothing: float = 1.0,
    control: Control = Control(),  # frozen
) -> tuple[Parents, dict[str, Any]]:
    """Return the best forest under a penalty, directed away from the root where it reaches.

    Parameters
    ----------
    data : Dataset
        Training data without unknown values; its weights are counted.
    conditional : bool
        Over the features given the class; else over all variables.
    penalty : {"none", "bic", "aic", "aicc", "holdout"}
        ``none`` keeps the whole tree. Under bic, aic and aicc the forest maximises the score of that name (AICc: with
        the parameters of the class and of all features counted). ``holdout`` draws the tree from one part of the rows,
        and takes as many of its heaviest edges as the log-likelihood of the other part likes best.
    root : int
        Variable at the root; every other tree of the forest has the direction of the spanning tree it was cut from.
    share, smoothing : float
        Of hold-out selection: share of the rows held out, Laplace constant of the parameters compared.
    control : Control
        Seed of the hold-out split; time limit and threads of the MILP.

    Returns
    -------
    parents : int64 array, shape (N,) if conditional, else (V,)
        The other end of each variable's edge towards the root, -1 for none.
    details : dict
        The number of edges, and of an AICc forest whether it is proved optimal.

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
        weights = terms.gain - Score(name=penalty).local_weights(total)[1] * terms.parameters
        above = positive_forest(weights, root, MINIMAL_GAIN * total)
    else:
        above = spanning_tree(terms.gain, root)
    if penalty == "holdout":
        count = _held_out_edges(data, conditional, root, share, smoothing, control.random_state)
        above[_by_falling_weight(terms.gain, above)[count:]] = -1
    return above, {"edges": int(np.count_nonzero(above >= 0))}


def _by_falling_weight(weights: NDArray[np.float64], above: Parents) -> NDArray[np.int64]:
    """Return the variables that have an edge above them, the heaviest edge first."""
    inner = np.flatnonzero(above >= 0)
    return inner[np.argsort(-weights[inner, above[inner]], kind="stable")]


def _held_out_edges(
    data: Dataset, conditional: bool, root: int, share: float, smoothing: float, random_state: int
) -> int:
    """Return how many of the heaviest edges of one part's tree the other part's log-likelihood likes best."""
    fit, held = hold_out(data, share, smoothing, random_state)
    gain = edge_terms(fit, conditional=conditional).gain
    above = spanning_tree(gain, root)
    without = forest_structure(fit, np.full_like(above, -1), conditional=conditional)
    tree = fit_cpts(fit, forest_structure(fit, above, conditional=conditional), smoothing)
    bare = fit_cpts(fit, without, smoothing)
    # An edge changes the factor of the variable below it and of no other, whatever edges there are.
    changes = [
        _log_factor(held, tree[i]) - _log_factor(held, bare[i]) for i in _by_falling_weight(gain, above)
    ]
    return int(np.argmax(np.concatenate([[0.0], np.cumsum(changes)])))


def _log_factor(data: Dataset, cpt: Cpt) -> float:
    """Return what one variable adds to the log-likelihood of the data, in nats."""
    columns = tuple(data.codes[:, j] for j in (*cpt.parents, cpt.variable))
    return float(data.weights @ np.log(cpt.table[columns]))


@dataclass(frozen=True, kw_only=True)
class ForestOptions:
    """Options of the learners of trees and forests.

    Attributes
    ----------
    penalty : {"none", "bic", "aic", "aicc", "holdout"}
        What decides how many edges stay; see `forest`.
    root : str or None
        Variable at the root of the tree; by default the class, or where the tree is over features the first one.
    holdout : float
        Share of the rows held out under the penalty ``holdout``.
    """

    penalty: str = setting("none", "What decides how many edges stay.", choices=PENALTIES)
    root: str | None = setting(
        None, "Variable at the root; by default the class, or of a tree over features the first one."
    )
    holdout: float = setting(0.2, "Share of the rows held out under --penalty holdout.")

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {} if self.penalty == "holdout" else {"holdout": f"penalty {self.penalty}"}

    def grow(
        self, data: Dataset, smoothing: float, control: Control, *, conditional: bool, root: int
    ) -> tuple[Parents, dict[str, Any]]:
        """Return the forest as `forest` does; `root` is the default.

        Raises
        ------
        InputError
            If the tree does not join the variable that is to be its root, and as `forest`.
        """
        among = data.names[:-1] if conditional else data.names
        if self.root is not None:
            if self.root not in among:
                raise InputError(
                    f"The root {self.root!r} is none of the variables that the tree joins; choose one of "
                    f"{', '.join(among[:20])}{', ...' if len(among) > 20 else ''}."
                )
            root = among.index(self.root)
        return forest(
            data,
            conditional=conditional,
            penalty=self.penalty,
            root=root,
            share=self.holdout,
            smoothing=smoothing,
            control=control,
        )
