"""The problem to solve: candidate sets, and the score as a function of eta."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.cpt import MAX_TABLE_ENTRIES, require_states, require_table
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates, list_candidates, require_candidates
from milpbn.problem.class_free import smallest_suffices
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.counts import n_parameters, require_units
from milpbn.problem.forecast import ParentSets, require_fit
from milpbn.problem.gate import objection
from milpbn.problem.margins import MarginRows, margin_rows
from milpbn.problem.rescore import rescored, standard_error
from milpbn.problem.rounding import score_error
from milpbn.problem.scores.aicc import AiccCurve
from milpbn.problem.scores.base import ScoreKind
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screened
from milpbn.problem.subset import Subset
from milpbn.problem.undominated import can_leave_out, undominated_sets
from milpbn.util.budget import Budget
from milpbn.util.plurals import counted

#: Largest local term of a parent set in nats; far below the range of float64.
LARGEST_TERM = 1e100


@dataclass(frozen=True)
class Problem:
    """Maximise ``linear @ eta + margins(eta) - correction(parameters @ eta)`` over acyclic choices."""

    #: Training samples, identical ones merged unless that was switched off.
    data: Dataset
    score: Score
    candidates: Candidates
    #: The constraints by variable index, which the candidates obey.
    rules: Rules
    #: Terms linear in eta, in nats, shape (P,): local scores, penalty, hybrid term, arc weights; and bounds on their
    #: rounding errors.
    linear: NDArray[np.float64]
    linear_error: NDArray[np.float64]
    #: Coefficients of a margin score.
    margins: MarginRows | None = None
    #: AICc's convex correction.
    curve: AiccCurve | None = None
    #: Weights of the samples' margins, shape (M,), instead of those of the data, if a subset represents all samples.
    sample_weights: NDArray[np.float64] | None = None
    constraints: Constraints = field(default_factory=Constraints)
    #: Number of admitted parent sets if dominated ones are not among the candidates (`milpbn.problem.undominated`);
    #: None if all admitted or listed ones are.
    n_admitted: int | None = None
    #: What screening did if the candidates are those that it kept; None if they are all, or a part of the problem.
    screened: Screened | None = None

    def __repr__(self) -> str:
        return f"<Problem of {self.data!r}: {self.score.summary}, {counted(self.candidates.n_sets, 'parent set')}>"

    @property
    def n_asked(self) -> int:
        """Number of parent sets that the claims are about: the candidates, and the dominated ones that are missing."""
        return self.candidates.n_sets if self.n_admitted is None else self.n_admitted

    @cached_property
    def score_error(self) -> float:
        """Bound on the rounding error of any structure's score by the coefficients, in nats."""
        margins, data = self.margins, self.data
        weight = 0.0 if margins is None else 1.0 if margins.smallest else float(margins.weights.sum())
        return score_error(data, self.score.prior, weight, self.linear_error, self.candidates.offsets)

    def shifted(self) -> tuple[Problem, float]:
        """Return the same problem without what all structures share in its linear terms, and that number in nats.

        Each variable's largest term is subtracted from the terms of all its parent sets, one of which every structure
        has. The tolerances of a MILP solver are then relative to what parent sets can lose against each other.
        """
        offsets = self.candidates.offsets
        largest = np.maximum.reduceat(self.linear, offsets[:-1])
        linear = self.linear - np.repeat(largest, np.diff(offsets))
        return replace(self, linear=linear), math.fsum(largest)

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """Column of each parent set's coefficients, -1 where all are 0, shape (P,)."""
        column = np.full(self.candidates.n_sets, -1, dtype=np.int64)
        if self.margins is not None:
            column[self.margins.columns] = np.arange(len(self.margins.columns))
        return column

    @cached_property
    def subset_weights(self) -> NDArray[np.float64] | None:
        """Weights of the merged samples (`Dataset.merged`) if a subset represents all; None without a subset."""
        return None if self.sample_weights is None else self.data.merged_weights(self.sample_weights)

    def with_p(self, p: float) -> Problem:
        """Return the same problem for another `Score.p`, the desired log-margin; the coefficients are shared."""
        assert self.margins is not None
        score = replace(self.score, p=p, gamma=None)
        return replace(self, score=score, margins=replace(self.margins, kind=score.kind))

    def indicator(self, choice: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return eta for one chosen parent set (its index) per variable, shape (P,)."""
        eta = np.zeros(self.candidates.n_sets)
        eta[choice] = 1.0
        return eta

    def choice(self, structure: Structure) -> NDArray[np.int64] | None:
        """Return the indices in eta of a structure's parent sets, or None if one of them is not a candidate."""
        return self.candidates.choice(structure)

    def adopted(self, structure: Structure) -> Structure:
        """Return a structure from elsewhere, with class-free parent sets replaced by candidates that score no less.

        If the smallest class-free set of a feature never scores less than the others (`smallest_suffices`), it may be
        the only one among the candidates, and takes the place of the others. If dominated sets are missing, the best
        candidate inside a set that the rules admit takes its place. All other parent sets stay as they are.
        The result may still break a rule; see `obeys`.
        """
        if self.n_admitted is not None and self.objection(structure) is None:
            own = [self.candidates.best_inside(i, s, self.linear) for i, s in enumerate(structure.parents)]
            return Structure(structure.names, tuple(own))
        if not smallest_suffices(self.score, self.rules):
            return structure
        stand_ins = [self.candidates.stand_in(i, s) for i, s in enumerate(structure.parents)]
        pairs = zip(stand_ins, structure.parents, strict=True)
        return Structure(structure.names, tuple(s if found is None else found for found, s in pairs))

    def value(self, eta: NDArray[np.float64], logits: NDArray[np.float64] | None = None) -> float:
        """Return the score at a point eta, computed from the coefficients (`rescore` computes it from the data).

        `logits`, shape (M, Q), are the joint log-probabilities at eta if they are known.
        """
        total = float(self.linear @ eta)
        if self.margins is not None:
            total += self.margins.value(eta, logits)
        if self.curve is not None:
            total -= self.curve.correction(float(self.curve.parameters @ eta))
        return total

    def rescore(self, structure: Structure) -> float:
        """Return the score of a structure, computed from the data (see `milpbn.problem.rescore.rescore`)."""
        return self.rescored(structure)[0]

    def rescored(self, structure: Structure) -> tuple[float, float]:
        """Return the score of a structure, computed from the data, and a bound on its rounding error."""
        return rescored(self.data, structure, self.score, self.rules, self.sample_weights)

    def standard_error(self, structure: Structure) -> float | None:
        """Return the standard error of a structure's score (see `milpbn.problem.rescore.standard_error`)."""
        return standard_error(self.data, structure, self.score, self.sample_weights)

    def objection(self, structure: Structure) -> str | None:
        """Return how a structure's arcs violate limits or constraints (see `milpbn.problem.gate`), or None."""
        return objection(structure, self.score, self.constraints)

    def obeys(self, structure: Structure) -> bool:
        """Whether a structure consists of candidates, obeys limits and paths, and has a score (AICc)."""
        choice = self.choice(structure)
        if choice is None:
            return False
        if self.curve is not None and self.curve.correction(self.curve.parameters[choice].sum()) == math.inf:
            return False
        return self.rules.within_limits(structure.parents) and self.rules.keeps_paths(structure.parents)


def local_terms(
    data: Dataset, candidates: Candidates, kind: ScoreKind, budget: Budget | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the local term of every candidate family, and its size for the error bound (`ScoreKind.family`).

    Both are float64 arrays of shape (P,), in nats; zeros if the score has no local terms. NoIncumbentError ends it if
    the budget is used up.
    """
    budget = budget or Budget()
    terms, sizes = np.zeros((2, candidates.n_sets))
    if not kind.has_local_terms:
        return terms, sizes
    for p, (variable, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        if p % 64 == 0:
            budget.check(
                f"{candidates.n_sets} local scores were computed", f"local scores {p} of {candidates.n_sets}"
            )
        terms[p], sizes[p] = kind.family(data, variable, parents)
    return terms, sizes


def parameter_counts(data: Dataset, candidates: Candidates) -> NDArray[np.float64]:
    """Return the number of free parameters of every candidate family, float64 array, shape (P,)."""
    families = zip(candidates.variable.tolist(), candidates.flat, strict=True)
    return np.array([n_parameters(data, i, s) for i, s in families], dtype=np.float64)


def linear_terms(
    data: Dataset, score: Score, candidates: Candidates, rules: Rules, budget: Budget | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the terms linear in eta and bounds on their rounding errors, two arrays of shape (P,)."""
    linear, size = local_terms(data, candidates, score.kind, budget)
    parent, child, index = candidates.arcs
    for (j, i), weight in rules.arc_weights.items():
        here = index[(parent == j) & (child == i)]
        linear[here] += weight
        size[here] += abs(weight)
    if not (np.abs(linear) < LARGEST_TERM).all():
        raise InputError(
            f"The penalty or the likelihood of a parent set reaches {LARGEST_TERM:g} nats; "
            "give a smaller penalty, hybrid or weight of the samples."
        )
    return linear, score.kind.term_error(data, score.prior) * size


def _require_tables(data: Dataset, sets: ParentSets) -> None:
    """Refuse sets whose parameter tables would be too large for a classifier (`require_table`), before a search."""
    states = data.n_states.tolist()
    if isinstance(sets, Candidates):
        for i, listed in enumerate(sets.sets):
            if max(states) ** (1 + max(map(len, listed))) > MAX_TABLE_ENTRIES:
                largest = max(listed, key=lambda parents: math.prod(states[j] for j in parents))
                require_table(data.variables, i, largest)
        return
    for i, own in enumerate(sets):
        require_table(
            data.variables, i, max(own.largest(states), key=lambda s: math.prod(states[j] for j in s))
        )


def usable_sets(
    data: Dataset, score: Score, constraints: Constraints | None, *, for_milp: bool, listed: bool = True
) -> tuple[Rules, list[Admitted]]:
    """Return the rules and the parent sets that these admit, after refusing a problem that does not fit the memory.

    The parent sets are not listed: with three parents there may be millions. The data are merged if the coefficients
    are built from merged samples. Arguments and errors are those of `build_problem`; see `require_usable`.
    """
    require_states(data)
    rules, admitted = resolve(checked_constraints(constraints), data.names, score)
    require_usable(data, score, admitted, rules, for_milp=for_milp, listed=listed)
    return rules, admitted


def checked_constraints(constraints: Constraints | None) -> Constraints:
    """Return the constraints, none for None; InputError if they are of another type."""
    constraints = Constraints() if constraints is None else constraints
    if not isinstance(constraints, Constraints):
        raise InputError(
            f"constraints must be Constraints, got a {type(constraints).__name__}; "
            "`Constraints.from_dict` reads a mapping."
        )
    return constraints


def require_usable(
    data: Dataset, score: Score, sets: ParentSets, rules: Rules, *, for_milp: bool, listed: bool = True
) -> None:
    """Refuse parent sets from which no problem can be built: a variable without any, or tables that are too large.

    The sets need not be listed: those that rules and options admit are counted. If they never are `listed` all at once,
    their list need not fit into memory. Errors are those of `build_problem`.
    """
    if isinstance(sets, Candidates):
        require_candidates(sets, score)
    if listed:
        require_fit(data, score, sets, rules, for_milp=for_milp)
    _require_tables(data, sets)


def build_problem(
    data: Dataset,
    score: Score,
    constraints: Constraints | None = None,
    *,
    merge: bool = True,
    for_milp: bool = True,
    budget: Budget | None = None,
    subset: Subset | NDArray[np.float64] | None = None,
    listed: tuple[Rules, ParentSets] | None = None,
    dominated: bool = True,
) -> Problem:
    """Build candidate sets and coefficients.

    `merge` merges identical samples into one with their total weight, which does not change any score. `for_milp`
    includes the tensor of all coefficients and a sparse model in the memory forecast. With a `subset` the margins are
    summed over representative samples instead of all; an array of shape (M,) has the weights of the margins of the
    (merged) samples, from a subset that was chosen before. `listed` are the rules and all or some of the parent sets;
    by default all that are admitted. If `dominated` is false and the score has bounds for that, admitted sets that are
    dominated are left out while they are scored (`milpbn.problem.undominated`).

    InputError if a value has no state, constraints conflict, AICc is undefined, the coefficients would not fit into
    memory, a subset is too small or the score is not a sum over samples, or a sample weighs less than the unit of
    weight that a leave-one-out score leaves out. NoIncumbentError if the budget is used up.
    """
    budget = budget or Budget()
    require_states(data)
    require_units(data, score.kind.unit)
    if merge:
        data = data.merged
    weights = subset.weights(data, score) if isinstance(subset, Subset) else subset
    leave_out = not dominated and can_leave_out(data, score, constraints)
    if listed is None:
        listed = usable_sets(data, score, constraints, for_milp=for_milp, listed=not leave_out)
    rules, sets = listed
    n_admitted = None
    if isinstance(sets, Candidates):
        candidates = sets
    elif leave_out:
        n_admitted = sum(own.count(data.n_features) for own in sets)
        candidates = undominated_sets(data, score, rules, sets, budget)
    else:
        candidates = list_candidates(data.names, sets, budget)
    budget.check(f"{candidates.n_sets} parent sets were listed", "parent sets")
    linear, error = linear_terms(data, score, candidates, rules, budget)
    margins = None
    if score.is_margin:
        margins = margin_rows(data, candidates, score, budget, weights)
    curve = None
    if score.kind.curve is not None:
        curve = score.kind.curve(parameter_counts(data, candidates), data.total_weight)
        curve.range(candidates.offsets)
    asked = constraints or Constraints()
    return Problem(data, score, candidates, rules, linear, error, margins, curve, weights, asked, n_admitted)
