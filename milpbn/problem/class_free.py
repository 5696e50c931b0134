"""Parent sets of a feature without the class: which are candidates, and what claims say where some are left out.

A feature's margin coefficients are 0 under every parent set without the class (Peharz & Pernkopf 2012, P12, footnote
1). So three cases differ, by the local terms of the score and by arc weights:

- All class-free sets add the same (`alike`): the smallest one that the rules allow represents them.
- The smallest one never adds less than a larger one (`smallest_suffices`). This is so under a penalty alone: a larger
  set has at least as many free parameters. Take any allowed structure, and give every feature without the class the
  smallest allowed set instead. This only removes arcs that no rule requires, so acyclicity, child limits and all other
  rules still hold, margins stay the same, and the penalty does not grow. Hence the largest score over the smallest
  sets is the largest score of all, and so every bound over them holds for all structures. A list of the best structures
  needs the other sets, and so does the penalty ``bic`` of a total weight below 1, which is negative (`settled`).
- Otherwise a larger set may add more: likelihood terms, arc weights, and every decomposable score.
"""

from __future__ import annotations

from dataclasses import replace

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.scores.options import ALL, AUTO, PAPER
from milpbn.problem.scores.spec import Score


def alike(score: Score, rules: Rules | Constraints) -> bool:
    """Return whether all parent sets of a feature without the class add the same to the score."""
    return score.kind.class_free_alike and not rules.arc_weights and not rules.ancestors


def smallest_suffices(score: Score, rules: Rules | Constraints) -> bool:
    """Return whether the smallest class-free parent set of a feature never adds less than a larger one."""
    return score.kind.smallest_class_free_suffices and not rules.arc_weights and not rules.ancestors


def has_larger(score: Score, rules: Rules | Constraints) -> bool:
    """Return whether features have candidates without the class beside the smallest one that the rules allow.

    With ``parent_sets='auto'`` they have them where a margin score needs them for its optimum.
    """
    if score.parent_sets == AUTO:
        return score.is_margin and not smallest_suffices(score, rules)
    return score.parent_sets == ALL and not alike(score, rules)


def among(score: Score, rules: Rules | Constraints) -> str:
    """Return the structures that optimum, bound and gap are about, as words after "among"; empty if all are meant.

    Every claim that a user sees has its words from here.
    """
    stands_for_all = alike if score.parent_sets == PAPER else smallest_suffices
    if has_larger(score, rules) or stands_for_all(score, rules):
        return ""
    demanded = " but those that constraints demand" if rules.required or rules.fixed else ""
    return f"structures in which every feature has the class among its parents, or no parents{demanded}"


def adapted(
    data: Dataset, score: Score, constraints: Constraints, *, listed: bool = False
) -> tuple[Score, Constraints]:
    """Return score and constraints adapted to data with a class (`settled`) or without one, with which a run begins.

    Without a class, all parent sets are candidates, and the child limit ``*`` is one of every variable.
    InputError if the score, or an option of it, needs a class.
    """
    if data.has_class:
        return settled(score, constraints, data.total_weight, listed=listed), constraints
    if score.is_margin:
        raise InputError(
            f"The score {score.name} needs a class, and the data {data.name!r} have none; choose a generative score, "
            "such as --score bdeu, or name the class with --target (target)."
        )
    if score.parent_sets == PAPER or not score.class_parents:
        raise InputError(
            f"The data {data.name!r} have no class, so that parent sets with and without it are the same; leave out "
            "--parent-sets paper (parent_sets) and --no-class-parents (class_parents)."
        )
    if constraints.max_features is not None:
        raise InputError(
            f"--max-features (max_features) counts the features on which predictions of the class depend, and the data "
            f"{data.name!r} have no class; leave it out, or name the class with --target (target)."
        )
    limits = dict(constraints.max_children)
    every = limits.pop("*", None)
    if every is not None:
        limits = dict.fromkeys(data.names, every) | limits
    return replace(score, parent_sets=ALL), replace(constraints, max_children=limits)


def settled(score: Score, rules: Rules | Constraints, total_weight: float, *, listed: bool = False) -> Score:
    """Return the score with which a run begins: with all parent sets where ``auto`` leaves out some that it needs.

    It needs them for a list of the best structures (`listed`), and under a negative penalty, ``bic`` of a total weight
    of the samples below 1.
    """
    if score.parent_sets != AUTO or not score.is_margin or alike(score, rules):
        return score
    needed = listed or score.kind.local_weights(total_weight)[1] < 0
    return replace(score, parent_sets=ALL) if needed else score
