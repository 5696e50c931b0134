"""The options of all scores, declared once.

This module imports nothing that takes time, since the help of the command line reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.util.options import Range, option

#: What `DeclaredScore.parent_sets` can be.
AUTO, PAPER, ALL = PARENT_SETS = ("auto", "paper", "all")
_MARGINS = "{option} goes with the margin scores {scores}, not with {score}"
_GAMMA = "gamma and p belong to the scores {scores}, not to {score}; leave them out."


@dataclass(frozen=True, kw_only=True, repr=False)
class DeclaredScore:
    """Name and options of a score, in the order in which files have them.

    The ranges, and that of the weights (`milpbn.data.weights`), keep rounding errors bounded
    (`milpbn.problem.rounding`). Log-margins of float64 probabilities stay far below the upper end of gamma, and their
    errors exceed the lower end.
    """

    name: str = option("sm", "One of the scores; default sm.", spelling=("--score",), kw_only=False)
    p: float | None = option(
        None,
        "gamma = log(p / (1 - p)); default 0.99. cv (solve only): choose p by validation.",
        validation=True,
        compare=False,
        refused=_GAMMA,
        belongs_to="gamma",
    )
    gamma: float | None = option(
        None,
        "Desired log-margin in nats, instead of --p.",
        range=Range(
            1e-9,
            1e6,
            "gamma must be a positive number of at least {low:g} and at most {high:g} nats, got {value}.",
        ),
        words=(0, "gamma = {value:.6g}"),
        selectable=False,
        refused=_GAMMA,
    )
    max_parents: int = option(
        2,
        "Maximum number of parents of a variable, the class included; default 2. cv (solve only): choose 1 or 2.",
        validation=True,
        range=Range(
            1, float("inf"), "max_parents counts all parents and must be at least {low}, got {value}."
        ),
        words=(4, "max_parents = {value}"),
    )
    smoothing: float = option(
        1.0,
        "Pseudo-counts per state in the parameters; default 1.",
        range=Range(
            1e-12, 1e12, "smoothing must be a positive number from {low:g} to {high:g}, got {value}."
        ),
        words=(2, "smoothing {value:.6g}"),
        of_classifiers="{option} smooths only the tables of a classifier: {score} counts without it. Leave it out.",
    )
    smoothing_towards: str = option(
        "uniform",
        "What smoothing shrinks the parameters of margin scores and cll towards: the uniform distribution (the "
        "default), the variable's distribution without parents, or the one given the class alone.",
        completes=("uniform", "marginal", "class"),
        metavar="uniform|marginal|class",
        refused=f"{_MARGINS}; leave it out.",
    )
    class_parents: bool = option(
        True,
        "Allow the class to have feature parents (the default), or not.",
        spelling=("--class-parents/--no-class-parents",),
        words=(5, "no class parents"),
    )
    parent_sets: str = option(
        AUTO,
        "Parent sets of the features. all: every set. paper: none, and those with the class; the optimum is then "
        "one among such structures. auto, the default: all for margin scores and cll, paper for the others.",
        choices=PARENT_SETS,
        words=(6, "parent sets: {value}"),
    )
    equivalent_sample_size: float = option(
        1.0,
        "Equivalent sample size of bdeu; default 1.",
        spelling=("--ess",),
        words=(3, "equivalent sample size {value:.6g}"),
        range=Range(
            1e-12,
            1e12,
            "The equivalent sample size must be a positive number from {low:g} to {high:g}, got {value}.",
        ),
        selectable=False,
        refused="The equivalent sample size belongs to the score {scores}, not to {score}; leave it out.",
    )
    penalty: float | str = option(
        0.0,
        "Penalty per free parameter, subtracted from a margin score or cll.",
        completes=("bic", "aic"),
        metavar="bic|aic|nats",
        range=Range(0.0, 1e12, "penalty must be a number of at least 0 and at most {high:g}, got {value}."),
        refused=f"{_MARGINS}.",
    )
    hybrid: float = option(
        0.0,
        "Factor on the log-likelihood, which is added to a margin score or cll.",
        range=Range(0.0, 1e12, "hybrid must be a number of at least 0 and at most {high:g}, got {value}."),
        refused=f"{_MARGINS}.",
    )
    leave_one_out: bool = option(
        False,
        "Score every sample with parameters from which its own copy is left out: margin scores, cll and ll.",
        words=(1, "leave-one-out"),
        refused="leave_one_out goes with the scores {scores}, not with {score}, whose penalty or prior already makes "
        "up for parameters that are fitted to the samples that they score.",
    )
