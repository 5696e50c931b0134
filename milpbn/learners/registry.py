"""The learners by their names on the command line.

The module of a learner is imported when `get_learner` asks for it, so that no learner waits for another one's imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.learners.base import Learner

#: Name of each learner, and its module and class within `milpbn.learners`.
LEARNERS = {
    "naive-bayes": "generative.forests:NaiveBayes",
    "chow-liu": "generative.forests:ChowLiu",
    "tan": "generative.forests:Tan",
    "multinet": "generative.multinet:MultinetLearner",
    "exact": "generative.exact:Exact",
    "all-orders": "generative.orders:AllOrders",
    "order": "generative.orders:OrderSearch",
    "hill-climbing": "generative.hill_climbing:HillClimbing",
    "stochastic": "generative.stochastic:Stochastic",
    "tan-cr": "discriminative.margin_search:GreedyRate",
    "tan-cl": "discriminative.margin_search:GreedyLikelihood",
    "tan-mm": "discriminative.margin_search:GreedyMargin",
    "tan-omi-cr": "generative.order_based:OrderRate",
    "tan-omi-cl": "generative.order_based:OrderLikelihood",
    "tan-omi-mm": "generative.order_based:OrderMargin",
    "annealing-mm": "discriminative.annealing:Annealing",
    "differentiable-tan": "differentiable.learner:DifferentiableTan",
    "parameters": "differentiable.learner:Parameters",
    "svm": "svm:Svm",
    "logistic": "peers:LogisticLearner",
    "boosting": "peers:BoostingLearner",
    "random-forest": "peers:RandomForestLearner",
}

#: The same for learners on raw columns, in the order of a comparison; `milpbn compare` has them alone.
RAW_LEARNERS = {
    "accurate": "raw_recipes:AccurateLearner",
    "readable": "raw_recipes:ReadableLearner",
    "ebm": "raw_peers:Ebm",
    "boosting": "raw_peers:RawBoosting",
    "random-forest": "raw_peers:RawForest",
    "logistic": "raw_peers:RawLogistic",
    "splines": "raw_peers:Splines",
    "svm": "raw_peers:RawSvm",
}


def get_learner(name: str, *, raw: bool = False) -> type[Learner]:
    """Return the class of a learner, whose fields are the options; InputError lists the names if there is none."""
    learners = RAW_LEARNERS if raw else LEARNERS
    if name not in learners:
        raise InputError(f"There is no learner {name!r}; choose one of {', '.join(learners)}.")
    module, attribute = learners[name].split(":")
    return getattr(import_module(f"milpbn.learners.{module}"), attribute)
