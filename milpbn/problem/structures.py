"""Well-known classes of structures, said by constraints."""

from __future__ import annotations

from dataclasses import replace

from milpbn.data.dataset import Dataset, require_class
from milpbn.errors import InputError
from milpbn.problem.class_free import has_larger
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score

NAIVE_BAYES, SELECTIVE, TAN, FOREST = "naive-bayes", "selective", "tan", "forest"
STRUCTURES = (NAIVE_BAYES, SELECTIVE, TAN, FOREST)


def structured(kind: str | None, data: Dataset, score: Score, base: Constraints) -> Constraints:
    """Return constraints, with those that leave only structures of a kind; the class has no parents in any.

    ``naive-bayes``: the class is the only parent of every feature. ``selective``: of some. ``forest``: a feature has no
    parents, or the class and at most one feature. ``tan``: the same, and the class is a parent of every feature, so
    that the arcs between features are a forest, of which a tree is the largest.

    InputError if there is no such kind, the data have no class, `base` fixes other parents, or the score admits more
    feature parents than a forest has.
    """
    if kind is None:
        return base
    if kind not in STRUCTURES:
        raise InputError(f"There is no structure {kind!r}; choose one of {', '.join(STRUCTURES)}.")
    require_class(data, f"The structure {kind} (--structure)")
    *features, target = data.names
    fixed: dict[str, tuple[str, ...]] = {target: ()}
    if kind == NAIVE_BAYES:
        fixed |= dict.fromkeys(features, (target,))
    for name, parents in fixed.items():
        if {*base.fixed.get(name, parents)} != {*parents}:
            raise InputError(f"In the structure {kind}, {name!r} has other parents than --fix (fixed) says.")
    found = replace(base, fixed={**base.fixed, **fixed})
    if kind == SELECTIVE:
        only = {name: tuple({target}.intersection(base.allowed.get(name, (target,)))) for name in features}
        return replace(found, allowed={**base.allowed, **only})
    if kind == TAN:
        arcs = ((target, name) for name in features)
        found = replace(found, required=tuple(dict.fromkeys((*base.required, *arcs))))
    if kind != NAIVE_BAYES and score.max_parents != 2:
        raise InputError(
            f"In the structure {kind}, features have at most two parents, the class and a feature: take max_parents = "
            f"2 (--max-parents 2), not {score.max_parents}."
        )
    if kind == FOREST and has_larger(score, found):
        raise InputError(
            "With this score, features may have two feature parents without the class, which no forest has: take "
            "--parent-sets paper (parent_sets), or the structure tan."
        )
    return found
