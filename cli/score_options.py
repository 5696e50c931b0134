"""The options of the score, and the one for the parameters of the classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.sections import given, option, option_group
from milpbn.cli.types import COUNT_OR_CV, NUMBER, NUMBER_OR_CV, word
from milpbn.errors import InputError
from milpbn.problem.scores.registry import ALIASES, SCORES, list_names

if TYPE_CHECKING:
    from milpbn.problem.scores.spec import Score


@dataclass(frozen=True)
class ScoreOptions:
    """The options of the score: attributes of `milpbn.Score`, and which of them validation chooses."""

    given: Mapping[str, Any]
    choose_p: bool = False
    choose_max_parents: bool = False

    @property
    def chooses(self) -> bool:
        """Whether validation chooses p or max_parents."""
        return self.choose_p or self.choose_max_parents

    def score(self) -> Score:
        """Return the score, checked."""
        from milpbn.problem.scores.spec import Score

        return Score(**self.given)


@option_group(
    "Score",
    "score",
    option(
        "--score",
        "name",
        type=word("name", *SCORES, *ALIASES),
        help=f"{list_names()}; default sm.",
    ),
    option(
        "--p", type=NUMBER_OR_CV, help="gamma = log(p / (1 - p)); default 0.99. cv: choose p by validation."
    ),
    option("--gamma", type=NUMBER, help="Desired log-margin in nats, instead of --p."),
    option(
        "--max-parents",
        type=COUNT_OR_CV,
        help="Maximum number of parents of a variable, the class included; default 2. cv: choose 1 or 2 by validation.",
    ),
    option(
        "--class-parents/--no-class-parents",
        default=None,
        help="Allow the class to have feature parents (the default), or not.",
    ),
    option("--smoothing", type=NUMBER, help="Pseudo-counts per state in the parameters; default 1."),
    option(
        "--smoothing-towards",
        type=word("uniform|marginal|class", "uniform", "marginal", "class"),
        help="What smoothing shrinks the parameters of margin scores and cll towards: the uniform distribution (the "
        "default), the variable's distribution without parents, or the one given the class alone.",
    ),
    option(
        "--parent-sets",
        type=click.Choice(["auto", "paper", "all"]),
        help="Parent sets of the features. all: every set. paper: none, and those with the class; the optimum is then "
        "one among such structures. auto, the default: all for margin scores and cll, paper for the others.",
    ),
    option("--ess", "equivalent_sample_size", type=NUMBER, help="Equivalent sample size of bdeu; default 1."),
    option(
        "--penalty",
        type=word("bic|aic|nats", "bic", "aic"),
        help="Penalty per free parameter, subtracted from a margin score or cll.",
    ),
    option(
        "--hybrid", type=NUMBER, help="Factor on the log-likelihood, which is added to a margin score or cll."
    ),
    option(
        "--leave-one-out",
        is_flag=True,
        help="Score every sample with parameters from which its own copy is left out: margin scores, cll and ll.",
    ),
)
def score_options(
    name: str | None,
    p: float | str | None,
    gamma: float | None,
    max_parents: int | str | None,
    class_parents: bool | None,
    smoothing: float | None,
    smoothing_towards: str | None,
    parent_sets: str | None,
    equivalent_sample_size: float | None,
    penalty: str | None,
    hybrid: float | None,
    leave_one_out: bool,
) -> ScoreOptions:
    """Gather the options of the score."""
    if p == "cv" and gamma is not None:
        raise InputError("--p cv chooses gamma itself; leave out --p or --gamma.")
    known = given(
        {
            "name": name,
            "p": None if p == "cv" else p,
            "gamma": gamma,
            "max_parents": None if max_parents == "cv" else max_parents,
            "class_parents": class_parents,
            "smoothing": smoothing,
            "smoothing_towards": smoothing_towards,
            "parent_sets": parent_sets,
            "equivalent_sample_size": equivalent_sample_size,
            "penalty": penalty,
            "hybrid": hybrid,
            "leave_one_out": leave_one_out or None,
        }
    )
    return ScoreOptions(known, p == "cv", max_parents == "cv")


#: Shared by the verbs that return classifiers.
PARAMETERS = option(
    "--parameters",
    type=word("ml|cll|hybrid|temperature", "ml", "cll", "hybrid", "temperature"),
    help="How the classifier's parameters are fitted after the search: relative frequencies (ml, the default), maximum "
    "conditional likelihood (cll), the same but shrunk towards ml (hybrid), or the log-joint of ml times a factor "
    "(temperature). Folds choose their values unless these are given: cll:10, hybrid:0.5:10, temperature:0.7. Score "
    "and bound are always those under ml.",
)
