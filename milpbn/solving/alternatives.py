"""Near-optimal alternatives to a structure: its neighbours that differ by one change, with their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from milpbn.claims.parts import Arc, ResultPart
from milpbn.heuristics.local_search import LocalSearch
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.problem.class_free import adapted
from milpbn.problem.constraints import Constraints, atoms, combine
from milpbn.problem.gate import objection
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.question import Question


@dataclass(frozen=True)
class Neighbour(ResultPart):
    """A structure that differs from another one by one change."""

    #: The arcs that only this structure has, and those that only the other one has.
    added: tuple[Arc, ...]
    removed: tuple[Arc, ...]
    #: Its score in nats, from the data, and that of the other one minus it; negative if this one is better.
    objective: float
    loss: float
    #: It follows from the arcs.
    structure: Structure
    UNWRITTEN = ("structure",)

    @property
    def change(self) -> str:
        """The change in words, such as ``with a -> b, without c -> b``."""
        parts = (("with", self.added), ("without", self.removed))
        return ", ".join(
            f"{word} {' and '.join(f'{a} -> {b}' for a, b in arcs)}" for word, arcs in parts if arcs
        )


def near_optimal(question: Question, structure: Structure, most: int = 10) -> tuple[Neighbour, ...]:
    """Return the best structures that differ by one change: one parent set, or the direction of one arc.

    A parent set changes by one parent that is added, removed or replaced, or by removing all of them. All neighbours
    that obey the constraints and the score's limits are compared by their coefficients; the best are scored anew from
    the data. They are among the structures that the score is about (`milpbn.problem.class_free.among`). Arcs from and
    to features with one state are not added: they change no prediction.

    The structure, usually an optimum, has to obey the constraints. The smallest loss comes first. Scores may tie: an
    optimum need not be the only one. Raise InputError as `build_problem` and `rescore` do.
    """
    data = question.data.merged
    score, asked = adapted(data, question.score, question.constraints or Constraints(), listed=True)
    rules = combine(atoms(asked, data.names))
    changed: list[dict[ParentSet, Structure]] = []
    for i, parents in enumerate(structure.parents):
        near = {
            s: _changed(structure, {i: s}, score, asked)
            for s in _neighbours(i, parents, data.n_states.tolist())
        }
        changed.append({s: other for s, other in near.items() if other is not None})
    sets = [(parents, *others) for parents, others in zip(structure.parents, changed, strict=True)]
    candidates = Candidates(data.names, tuple(sets))
    problem = build_problem(data, score, asked, merge=False, for_milp=False, listed=(rules, candidates))
    search = LocalSearch(problem, structure)
    scored: list[tuple[float, Structure]] = []
    for i, others in enumerate(changed):
        scored += zip(search.scores(i).tolist()[1:], others.values(), strict=True)
    for change in _reversals(structure):
        turned = _changed(structure, change, score, asked)
        if turned is not None:
            scored.append((rescore(data, turned, score, rules), turned))
    scored.sort(key=lambda pair: -pair[0])
    own = rescore(data, structure, score, rules)
    found = [
        _alternative(structure, other, own, rescore(data, other, score, rules)) for _, other in scored[:most]
    ]
    return tuple(sorted(found, key=lambda alternative: alternative.loss))


def _alternative(structure: Structure, other: Structure, own: float, value: float) -> Neighbour:
    before, after = ([(s.names[j], s.names[i]) for j, i in s.arcs] for s in (structure, other))
    added, removed = (a for a in after if a not in before), (a for a in before if a not in after)
    return Neighbour(tuple(added), tuple(removed), value, own - value, other)


def _neighbours(i: int, parents: ParentSet, n_states: Sequence[int]) -> Iterator[ParentSet]:
    """Yield the other parent sets of a variable that differ by one parent, by one for another, or by all of them.

    No feature with one state is added, and one without parents gets none.
    """
    inside, last = set(parents), len(n_states) - 1
    outside = {j for j, count in enumerate(n_states) if count > 1 or j == last} - {i, *parents}
    if n_states[i] == 1 and i != last:
        outside = set()
    sets = {tuple(sorted(inside - {j})) for j in inside} | {()}
    sets |= {tuple(sorted(inside | {k})) for k in outside}
    sets |= {tuple(sorted((inside - {j}) | {k})) for j in inside for k in outside}
    if not inside and i != last:  # a feature without the class gets it together with a feature
        sets |= {tuple(sorted((k, last))) for k in outside - {last}}
    yield from sorted(sets - {parents}, key=lambda s: (len(s), s))


def _reversals(structure: Structure) -> Iterator[dict[int, ParentSet]]:
    """Yield for every arc the parent sets of its two ends once it is reversed."""
    for parent, child in structure.arcs:
        own, above = structure.parents[child], structure.parents[parent]
        yield {child: tuple(j for j in own if j != parent), parent: tuple(sorted((*above, child)))}


def _changed(
    structure: Structure, change: dict[int, ParentSet], score: Score, constraints: Constraints
) -> Structure | None:
    """Return the structure with other parent sets, or None if it has a cycle or disobeys constraints or limits."""
    parents = tuple(change.get(i, own) for i, own in enumerate(structure.parents))
    if topological_order(parents) is None:
        return None
    other = Structure(structure.names, parents)
    return other if objection(other, score, constraints) is None else None
