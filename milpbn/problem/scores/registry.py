"""The registry of the scores by name; docs/adding-a-score.md shows how to add one.

A score's class is imported only when it is needed, so that listing names does not import NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.problem.scores.base import ScoreKind

#: Name of each score, and its module and class within `milpbn.problem.scores`.
SCORES = {
    "sm": "soft_margin:SoftMargin",
    "sbm": "soft_margin:BinarySoftMargin",
    "hard-margin": "soft_margin:HardMargin",
    "cll": "conditional_likelihood:ConditionalLikelihood",
    "ll": "likelihood:Likelihood",
    "mdl": "likelihood:Mdl",
    "aic": "likelihood:Aic",
    "aicc": "aicc:Aicc",
    "bdeu": "bdeu:Bdeu",
}
#: Other names of some scores.
ALIASES = {"bic": "mdl"}


def find_score(name: str) -> type[ScoreKind]:
    """Return the class of a score; the InputError for an unknown name lists the names."""
    if name not in SCORES:
        other = " and ".join(f"{word} for {of}" for word, of in ALIASES.items())
        raise InputError(f"There is no score {name!r}; choose one of {', '.join(SCORES)} (or {other}).")
    module, attribute = SCORES[name].split(":")
    kind: type[ScoreKind] = getattr(import_module(f"milpbn.problem.scores.{module}"), attribute)
    return kind


def score_names(holds: Callable[[type[ScoreKind]], bool]) -> tuple[str, ...]:
    """Return the names of the scores whose class satisfies a condition, in the registry's order."""
    return tuple(name for name in SCORES if holds(find_score(name)))


def margin_scores() -> tuple[str, ...]:
    """Return the names of the scores on class margins."""
    return score_names(lambda kind: kind.is_margin)


def generative_scores() -> tuple[str, ...]:
    """Return the names of the scores that are not on class margins."""
    return score_names(lambda kind: not kind.is_margin)


def sums_of_samples() -> tuple[str, ...]:
    """Return the names of the scores whose samples' part is a sum, which are those the native engine maximises."""
    return score_names(lambda kind: kind.sums_samples)


def list_names() -> str:
    """Return one line of all names, with the other names of each score."""
    words = {of: f"{of} or {word}" for word, of in ALIASES.items()}
    return ", ".join(words.get(name, name) for name in SCORES)
