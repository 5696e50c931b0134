"""The methods of Table 2 of Peharz & Pernkopf (2012, P12), two more that they are compared with, and the recipe.

The recipe is there alone, and with the average of its four best networks.

A method is a frozen dataclass whose fields are all its settings. They are fixed here, before any test row is scored,
and are part of the key of every cell. To add a method, write a subclass of `milpbn.experiments.base.Method`, and name
it in `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from milpbn.errors import InputError
from milpbn.experiments.base import Budgets, Method
from milpbn.experiments.baselines import PeerMethod, SupportVectors
from milpbn.experiments.digits import DIGIT_LEARNERS, DigitClassifier
from milpbn.experiments.forests import FORESTS
from milpbn.experiments.networks import ClosedFormMethod, ExactSearch, SettingChoice
from milpbn.experiments.recommended import RecommendedMethod
from milpbn.problem.scores.registry import find_score
from milpbn.problem.scores.spec import P_GRID
from milpbn.solving.recipes import RECIPES


def _exact(score: str, budgets: Budgets) -> ExactSearch:
    kind = find_score(score)
    p, acyclicity = P_GRID if kind.takes("gamma") else None, "order" if kind.is_margin else "cluster"
    choice = SettingChoice(score=score, seconds=budgets.selection, p=p, acyclicity=acyclicity)
    return ExactSearch(choice=choice, seconds=budgets.final)


def _digits(name: str, budgets: Budgets) -> Method:
    return DigitClassifier(learner=name, seconds=budgets.final)


def _without_budget(one: Method, budgets: Budgets) -> Method:
    return one


#: C of the logistic regression is chosen by accuracy on P12's validation splits.
_LOGISTIC = {"costs": 10, "scoring": "accuracy", "max_iter": 1000}
#: The defaults of scikit-learn.
_BOOSTING = {"learning_rate": 0.1, "max_iter": 100, "early_stopping": "auto"}
#: The methods by name, in the order of the tables.
METHODS: dict[str, Callable[[Budgets], Method]] = {
    "nb": lambda budgets: ClosedFormMethod(learner="nb"),
    "tan": lambda budgets: ClosedFormMethod(learner="tan"),
    "mdl": lambda budgets: _exact("mdl", budgets),
    "sm": lambda budgets: _exact("sm", budgets),
    "sbm": lambda budgets: _exact("sbm", budgets),
    "svm": lambda budgets: SupportVectors(),
    "logistic": lambda budgets: PeerMethod(learner="logistic", settings=_LOGISTIC),
    "boosting": lambda budgets: PeerMethod(learner="boosting", settings=_BOOSTING),
    "recipe": lambda budgets: RecommendedMethod.of("recipe", RECIPES["readable"], budgets.recipe),
    "recipe-average": lambda budgets: RecommendedMethod.of(
        "recipe-average", RECIPES["readable"], budgets.recipe, average=4
    ),
}
#: What is computed and shown of P12 by default; the average of four networks takes the time of four.
P12_METHODS = tuple(name for name in METHODS if name != "recipe-average")
METHODS |= {forest.name: partial(_without_budget, forest) for forest in FORESTS}
METHODS |= {name: partial(_digits, name) for name in DIGIT_LEARNERS}


def method(name: str, budgets: Budgets, n_classes: int) -> Method:
    """Return a method by its name; InputError if there is none.

    With two classes, SM and SBM are the same problem (P12, section 5), so that ``sbm`` is the method ``sm``, and
    nothing is computed twice.
    """
    if name not in METHODS:
        raise InputError(f"There is no method {name!r}; choose from {', '.join(METHODS)}.")
    return METHODS["sm" if name == "sbm" and n_classes == 2 else name](budgets)
