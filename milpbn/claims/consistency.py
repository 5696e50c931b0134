"""Parts of a result that contradict each other: such a result is refused when it is read."""

from __future__ import annotations

from typing import Any

from milpbn.claims.gap import proves
from milpbn.claims.reasons import WITH_STRUCTURE, WITHOUT_STRUCTURE, Reason
from milpbn.util.jsonable import Fields

#: Seconds by which sums of times may differ: each time is rounded to microseconds by itself.
TIME_ROUNDING = 5e-6


def check_claims(f: Fields, result: Any) -> None:
    """Refuse a result, which was read from `f`, if its parts contradict each other, in a sentence that names the two.

    The type of `result` is Any because the module of `milpbn.Result` imports this one.
    """
    structure, searched = result.structure, result.searched
    _check_status(f, result)
    trace = result.trace
    if trace and trace[-1][1:] != (searched.objective, searched.bound):
        raise f.contradiction(
            f"its trace does not end with its score and bound, but with ({trace[-1][1]!r}, {trace[-1][2]!r})"
        )
    total, *parts = vars(result.seconds).values()
    if abs(total - sum(parts)) > TIME_ROUNDING * max(1.0, total):
        raise f.contradiction("its seconds do not add up")
    if trace and trace[-1][0] > total + TIME_ROUNDING:
        raise f.contradiction(f"its trace goes on after the {total!r} s that it took")
    if structure is not None and result.data.features != len(structure.names) - (result.data.classes > 0):
        raise f.contradiction("its structure has another number of features than its data")
    for key, arcs in ({} if result.proved is None else result.proved.to_dict()).items():
        for arc in arcs:
            if structure is None or arc[0] == arc[1] or not {*arc} <= {*structure.names}:
                raise f.contradiction(
                    f"it lists the arc {arc[0]} -> {arc[1]} ({key}), which no structure over its variables can have"
                )
    if result.alternatives is not None and (result.subset is not None or result.screened is not None):
        raise f.contradiction(
            "it lists the best structures of all, but only a subset or screened parent sets were searched"
        )
    check_alternatives(f, result)
    if result.selection is not None:
        result.selection.check(f, result.score)
    if result.average is not None and (structure is None or result.selection is None):
        raise f.contradiction("it tells of an average without a structure, or without a selection")
    for parent, child in () if result.parameters is None else result.parameters.added_arcs:
        parents = {} if structure is None else structure.to_mapping()
        if parent not in parents or child not in parents or parent == child or parent in parents[child]:
            raise f.contradiction(
                f"it says that its classifier has the arc {parent} -> {child} as well, which is none between two of "
                "its variables, or one that its structure has"
            )


def _check_status(f: Fields, result: Any) -> None:
    reason, structure, objective, subset = result.reason, result.structure, result.objective, result.subset
    if (structure is None) != (objective is None):
        raise f.contradiction("it has a structure without a score, or a score without a structure")
    if reason in (WITHOUT_STRUCTURE if structure is not None else WITH_STRUCTURE):
        raise f.contradiction(
            f"the reason {str(reason)!r} {'excludes' if structure is not None else 'requires'} a structure"
        )
    # The converse need not hold: rounding counts against the structure, so a result may stay feasible.
    if reason == Reason.OPTIMAL and not result.proves(objective, result.bound):
        raise f.contradiction(
            f"it says {str(reason)!r}, but its bound does not prove that its structure is optimal"
        )
    _check_screened(f, result)
    if subset is None:
        return
    if result.reason == Reason.OPTIMAL or result.proved is not None:
        raise f.contradiction("it proves an optimum or arcs for all rows, but only a subset was searched")
    if subset.samples > result.data.samples:
        raise f.contradiction("its subset has more samples than its data")
    if (subset.objective is None) != (objective is None):
        raise f.contradiction("it has only one of the two scores, over the subset and over all rows")
    if subset.optimal and not result.proves(subset.objective, subset.bound):
        raise f.contradiction(
            "it calls the subset's structure optimal, but its score and bound do not prove it"
        )


def _check_screened(f: Fields, result: Any) -> None:
    """Refuse a claim about the kept parent sets that goes further, or that is not about the result's structure."""
    claim = result.screened
    if claim is None:
        return
    if result.subset is not None:
        raise f.contradiction(
            "it is of a search over a subset and over screened parent sets, which excludes itself"
        )
    if result.bound is not None or result.proved is not None:
        raise f.contradiction(
            "it has a bound or proved arcs for all parent sets, but only the kept ones were searched"
        )
    if claim.objective != result.objective:
        raise f.contradiction("its score is not the score over the kept parent sets")
    if result.structure is not None and set(claim.kept) != set(result.structure.names):
        raise f.contradiction("it has kept parent sets of other variables than those of its structure")
    if claim.optimal and not result.proves(claim.objective, claim.bound):
        raise f.contradiction(
            "it calls the structure optimal over the kept parent sets, but score and bound do not prove it"
        )


def check_alternatives(f: Fields, result: Any) -> None:
    """Refuse a list of the K best structures that contradicts the rest of the result."""
    claim = result.alternatives
    if claim is None:
        return
    if claim.structures[0].objective != result.objective:
        raise f.contradiction("the score of the first of its best structures is not its score")
    if claim.structures[0].structure != result.structure:
        raise f.contradiction("the first of its best structures is not its structure")
    if claim.bound is not None and (result.bound is None or claim.bound > result.bound):
        raise f.contradiction("its bound on the structures outside its list is above its bound on all")
    if claim.optimal and not (claim.exhausted or proves(claim.cutoff, claim.bound, result.tolerance)):
        raise f.contradiction("it calls the list the best one, but its bound does not prove that")
