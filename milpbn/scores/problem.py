"""The problem to solve: candidate sets, and the score as a function of eta."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.representatives import representative_weights
from milpbn.errors import InputError
from milpbn.memory import require_memory
from milpbn.network.cpt import MAX_TABLE_ENTRIES, require_states, require_table
from milpbn.network.structure import Structure
from milpbn.scores.candidates import Candidates, class_free_alike, require_candidates
from milpbn.scores.conflicts import resolve
from milpbn.scores.constraints import Constraints, Rules
from milpbn.scores.forecast import (
    COEFFICIENTS_AND_MODEL,
    TABLES,
    remedy,
    require_room,
    solver_bytes,
    tables_bytes,
    tensor_bytes,
)
from milpbn.scores.generative import AiccCurve, LocalScores, bdeu_scores, local_scores
from milpbn.scores.margins import MarginRows, margin_rows
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import Score


@dataclass(frozen=True)
class Problem:
    """Maximise ``linear @ eta + margins(eta) - correction(parameters @ eta)`` over acyclic choices.

    Attributes
    ----------
    data : Dataset
        Training samples, identical ones merged unless that was switched off.
    score : Score
        What is maximised.
    candidates : Candidates
        Parent sets that obey the rules.
    rules : Rules
        User constraints, in indices.
    linear : float64 array, shape (P,)
        Terms linear in eta: local scores, penalty, hybrid term, arc weights.
    margins : MarginRows or None
        Coefficients of a margin score.
    curve : AiccCurve or None
        AICc's convex correction.
    sample_weights : float64 array, shape (M,), or None
        What the samples' margins count instead of their weights: a subset that stands for all.
    """

    data: Dataset
    score: Score
    candidates: Candidates
    rules: Rules
    linear: NDArray[np.float64]
    margins: MarginRows | None = None
    curve: AiccCurve | None = None
    sample_weights: NDArray[np.float64] | None = None

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """Column of the coefficients of each entry of eta, -1 where all are 0, shape (P,)."""
        column = np.full(self.candidates.n_sets, -1, dtype=np.int64)
        if self.margins is not None:
            column[self.margins.columns] = np.arange(len(self.margins.columns))
        return column

    @cached_property
    def subset_weights(self) -> NDArray[np.float64] | None:
        """What the different samples (`Dataset.merged`) count where a subset stands for all; None without one."""
        return None if self.sample_weights is None else self.data.merged_weights(self.sample_weights)

    def with_gamma(self, gamma: float) -> Problem:
        """Return the same problem for another desired log-margin; the coefficients are shared."""
        assert self.margins is not None
        return replace(
            self, score=replace(self.score, gamma=gamma), margins=replace(self.margins, gamma=gamma)
        )

    def indicator(self, choice: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return eta of one chosen entry per variable, shape (P,)."""
        eta = np.zeros(self.candidates.n_sets)
        eta[choice] = 1.0
        return eta

    def choice(self, structure: Structure) -> NDArray[np.int64] | None:
        """Return the entries of eta of a structure, or None if it is outside the candidates."""
        alike = class_free_alike(self.score, self.rules)
        return self.candidates.choice(structure, class_free_alike=alike)

    def value(self, eta: NDArray[np.float64]) -> float:
        """Return the score at a point eta, by the coefficients (not by the data, see `rescore`)."""
        total = float(self.linear @ eta)
        if self.margins is not None:
            total += self.margins.value(eta)
        if self.curve is not None:
            total -= self.curve.correction(float(self.curve.parameters @ eta))
        return total

    def rescore(self, structure: Structure) -> float:
        """Return the score of a structure, by the data (see `milpbn.scores.rescore.rescore`)."""
        return rescore(self.data, structure, self.score, self.rules, self.sample_weights)

    def obeys(self, structure: Structure) -> bool:
        """Whether a structure is among the candidates, within the child limits, and has a score (AICc)."""
        choice = self.choice(structure)
        if choice is None:
            return False
        if self.curve is not None and self.curve.correction(self.curve.parameters[choice].sum()) == math.inf:
            return False
        return self.rules.crowded(structure.parents) is None


def _linear_terms(
    data: Dataset,
    score: Score,
    candidates: Candidates,
    rules: Rules,
    local: LocalScores | None,
    deadline: float | None,
) -> NDArray[np.float64]:
    linear = np.zeros(candidates.n_sets)
    if score.name == "bdeu":
        linear += bdeu_scores(data, candidates, score.equivalent_sample_size, deadline)
    elif local is not None:
        likelihood, per_parameter = score.local_weights(float(data.weights.sum()))
        linear += likelihood * local.log_likelihood - per_parameter * local.parameters
    parent, child, entry = candidates.arcs
    for (j, i), weight in rules.arc_weights.items():
        linear[entry[(parent == j) & (child == i)]] += weight
    return linear


def _require_tables(data: Dataset, candidates: Candidates) -> None:
    """Refuse candidate sets that no classifier could be made of, now rather than at the end of the search.

    Raises
    ------
    InputError
        See `require_table`.
    """
    states = [v.n_states for v in data.variables]
    for i, sets in enumerate(candidates.sets):
        if max(states) ** (1 + max(map(len, sets))) <= MAX_TABLE_ENTRIES:
            continue
        largest = max(sets, key=lambda parents: math.prod(states[j] for j in parents))
        require_table(data.variables, i, largest)


def build_problem(
    data: Dataset,
    score: Score,
    constraints: Constraints | None = None,
    *,
    merge: bool = True,
    for_milp: bool = True,
    deadline: float | None = None,
    subset: int | None = None,
    random_state: int = 0,
    sample_weights: NDArray[np.float64] | None = None,
) -> Problem:
    """Build candidate sets and coefficients.

    Parameters
    ----------
    data : Dataset
        Training data.
    score : Score
        What to maximise.
    constraints : Constraints, optional
        User constraints by name.
    merge : bool
        Merge identical samples into one with their weight (no score changes).
    for_milp : bool
        The tensor of all coefficients and a sparse model will be made: the memory forecast includes them.
    deadline : float, optional
        `time.monotonic` value at which to give up.
    subset : int, optional
        Sum the margins over so many representative samples (`representative_weights`) instead of all.
    random_state : int
        Seed of their choice.
    sample_weights : float64 array, shape (M,), optional
        What the margins of the (merged) samples count, of a subset that was chosen before.

    Returns
    -------
    Problem

    Raises
    ------
    InputError
        If a value has no state, constraints conflict, AICc is undefined, the coefficients would not fit the
        machine's memory, or a subset is asked for that is too small, or of a score without margins.
    NoIncumbentError
        If the deadline has passed.
    """
    require_states(data)
    if merge:
        data = data.merged
    constraints = Constraints() if constraints is None else constraints
    if not isinstance(constraints, Constraints):
        raise InputError(
            f"constraints must be Constraints, got a {type(constraints).__name__}; "
            "`Constraints.from_dict` reads a mapping."
        )
    if subset is not None:
        if not score.is_margin or score.name == "hard-margin":
            raise InputError(
                f"A subset of samples stands for the sum of sm, sbm and cll, not for {score.name}."
            )
        sample_weights = representative_weights(data, subset, random_state)
    if not constraints:
        require_room(data, score, for_milp=for_milp)
    rules, candidates = resolve(constraints, data.names, score)
    require_candidates(candidates, score)
    _require_tables(data, candidates)
    local = local_scores(data, candidates, deadline) if score.has_local_terms else None
    margins = None
    if score.is_margin:
        if for_milp:
            needed = tensor_bytes(data, candidates, score) + solver_bytes(data, candidates, score)
            what = COEFFICIENTS_AND_MODEL
        else:
            needed, what = tables_bytes(data, candidates, score), TABLES
        require_memory(needed, what, remedy(score))
        margins = margin_rows(data, candidates, score, deadline, sample_weights)
    curve = None
    if score.name == "aicc":
        assert local is not None
        curve = AiccCurve(local.parameters, float(data.weights.sum()))
        curve.range(candidates)
    linear = _linear_terms(data, score, candidates, rules, local, deadline)
    return Problem(data, score, candidates, rules, linear, margins, curve, sample_weights)
