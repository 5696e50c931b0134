"""How far a learnt structure is from the best one there could be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.result import Gap, Result
from milpbn.scores.candidates import Candidates, class_free_alike
from milpbn.scores.conflicts import resolve
from milpbn.scores.constraints import Rules
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import Score


@dataclass(frozen=True)
class Suboptimality:
    """A structure under the score of a proved bound.

    Attributes
    ----------
    score : float
        Nats, with Laplace-smoothed ML parameters and the options of the bound's score.
    bound : float
        Upper bound in nats on the score of every structure that the bound speaks of.
    gap : Gap or None
        Between the two; None where the bound does not speak of the structure.
    reason : str
        Why there is no gap, as a clause; empty where there is one.
    """

    score: float
    bound: float
    gap: Gap | None
    reason: str = ""


def check_bound(data: Dataset, result: Result, where: str) -> float:
    """Return the bound of a result of the same data; see `suboptimality`."""
    if result.subset is not None:
        raise InputError(
            f"The result {where} is of a search over {result.subset['samples']} representative samples: its bound is "
            "one on their score, not on that of all data; solve without --subset (subset)."
        )
    if result.bound is None:
        raise InputError(f"The result {where} holds no bound; solve again, for longer.")
    if data.sha256 != result.data.sha256:
        raise InputError(
            f"The bound in {where} is for other data ({result.data.name!r}) than {data.name!r}; "
            "give the data, rows and options of reading of that run."
        )
    return result.bound


def suboptimality(data: Dataset, structure: Structure, result: Result, where: str) -> Suboptimality:
    """Score a structure as a result's score would, and state its gap to the result's bound.

    Parameters
    ----------
    data : Dataset
        The training data of the result.
    structure : Structure
        Over the same variables, wherever it comes from.
    result : Result
        With a bound; its score, constraints and data count.
    where : str
        The result's name in messages, such as "'result.json'".

    Raises
    ------
    InputError
        If the result has no bound, or is of other data.
    """
    bound = check_bound(data, result, where)
    rules, candidates = resolve(result.constraints, data.names, result.score)
    value = rescore(data, structure, result.score, rules)
    reason = why_outside(structure, result.score, rules, candidates)
    if not reason and not math.isfinite(value):
        reason = f"{result.score.name} has no finite value for it"
    gap = None if reason else Gap.between(value, bound)
    return Suboptimality(value, bound, gap, reason)


def why_outside(structure: Structure, score: Score, rules: Rules, candidates: Candidates) -> str:
    """Return why a bound over the candidates under the rules does not speak of a structure, or nothing.

    Where all class-free sets of a feature score the same, a candidate inside such a set stands for it.
    """
    names = structure.names
    i = candidates.first_outside(structure, class_free_alike=class_free_alike(score, rules))
    if i is not None:
        shown = ", ".join(names[j] for j in structure.parents[i]) or "(none)"
        return f"the parents {shown} of {names[i]!r} are none of the parent sets of that run"
    crowded = rules.crowded(structure.parents)
    if crowded is not None:
        return f"that run allowed {names[crowded]!r} at most {rules.max_children[crowded]} children"
    return ""
