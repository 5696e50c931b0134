"""The learners by the names that the command line knows.

A learner is imported when it is asked for, so that none pays for the imports of another.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.learners.base import Learner

#: Name of each learner, and its module and class within `milpbn.learners`.
LEARNERS = {
    "naive-bayes": "naive_bayes:NaiveBayes",
    "chow-liu": "chow_liu:ChowLiu",
    "tan": "tan:Tan",
    "multinet": "multinet:MultinetLearner",
    "exact": "exact:Exact",
    "all-orders": "orders:AllOrders",
    "order": "orders:OrderSearch",
    "hill-climbing": "hill_climbing:HillClimbing",
    "stochastic": "stochastic:Stochastic",
    "tan-cr": "margin_search:GreedyRate",
    "tan-cl": "margin_search:GreedyLikelihood",
    "tan-mm": "margin_search:GreedyMargin",
    "tan-omi-cr": "order_based:OrderRate",
    "tan-omi-cl": "order_based:OrderLikelihood",
    "tan-omi-mm": "order_based:OrderMargin",
    "annealing-mm": "annealing:Annealing",
    "differentiable-tan": "differentiable.learner:DifferentiableTan",
    "parameters": "differentiable.learner:Parameters",
    "svm": "svm:Svm",
}


def get_learner(name: str) -> type[Learner]:
    """Return the class of a learner; its fields are the options.

    Raises
    ------
    InputError
        If there is no learner of that name; the sentence lists them.
    """
    if name not in LEARNERS:
        raise InputError(f"There is no learner {name!r}; choose one of {', '.join(LEARNERS)}.")
    module, attribute = LEARNERS[name].split(":")
    return getattr(import_module(f"milpbn.learners.{module}"), attribute)
