"""Every structure that a case allows, by the definitions and nothing else; none is pruned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import networkx as nx  # type: ignore[import-untyped]

from campaign.case import Case

Parents = tuple[int, ...]
Graph = tuple[Parents, ...]

MARGIN_SCORES = ("sm", "sbm", "hard-margin", "cll")


class TooManyError(Exception):
    """There are more structures than the caller accepts."""


def is_margin(case: Case) -> bool:
    """Whether the score is made of class margins."""
    return case.score["name"] in MARGIN_SCORES


def arc_is_allowed(case: Case, parent: str, child: str) -> bool:
    """Whether one arc obeys forbidden arcs, tiers and allowed parents."""
    rules = case.constraints
    if [parent, child] in rules.get("forbidden", []):
        return False
    tier = {name: level for level, names in enumerate(rules.get("tiers", [])) for name in names}
    if parent in tier and child in tier and tier[parent] > tier[child]:
        return False
    allowed = rules.get("allowed", {})
    return child not in allowed or parent in allowed[child]


def set_is_allowed(case: Case, child: int, parents: Parents) -> bool:
    """Whether one parent set obeys all constraints on single sets, `max_parents` and `class_parents`."""
    names, rules, last = case.names, case.constraints, len(case.names) - 1
    members = [names[j] for j in parents]
    if len(parents) > case.score.get("max_parents", 2):
        return False
    if child == last and parents and not case.score.get("class_parents", True):
        return False
    if any(b == names[child] and a not in members for a, b in rules.get("required", [])):
        return False
    fixed = rules.get("fixed", {})
    if names[child] in fixed and set(members) != set(fixed[names[child]]):
        return False
    return all(arc_is_allowed(case, a, names[child]) for a in members)


def breach(case: Case, mapping: Mapping[str, list[str]]) -> str:
    """Return which constraint a structure, as parents by name, breaks; empty if none."""
    names = case.names
    if set(mapping) != set(names):
        return "it is over other variables"
    graph = tuple(tuple(sorted({names.index(j) for j in mapping[name]})) for name in names)
    if not is_acyclic(graph):
        return "it has a cycle"
    for child, parents in enumerate(graph):
        if not set_is_allowed(case, child, parents):
            return f"the parents {[names[j] for j in parents]} of {names[child]} are not allowed"
    if (crowded := _crowded(case, graph)) is not None:
        return f"{crowded} has too many children"
    if too_many_features(case, graph):
        return "predictions depend on too many features"
    return "" if obeys_paths(case, graph) else "it breaks a constraint on paths"


def on_paths(case: Case) -> bool:
    """Whether a case has constraints on paths."""
    return any(case.constraints.get(key) for key in ("ancestors", "no_ancestors", "independences"))


def obeys_paths(case: Case, graph: Graph) -> bool:
    """Whether a structure has the paths and independences that are asked for."""
    rules, names = case.constraints, case.names
    for key in ("ancestors", "no_ancestors"):
        for a, d in rules.get(key, ()):
            if _reaches(graph, names.index(a), names.index(d)) != (key == "ancestors"):
                return False
    if not rules.get("independences"):
        return True
    drawn = nx.DiGraph()
    drawn.add_nodes_from(names)
    drawn.add_edges_from((names[j], names[i]) for i, own in enumerate(graph) for j in own)
    return all(nx.is_d_separator(drawn, {a}, {b}, {*s}) for a, b, s in rules["independences"])


def _reaches(graph: Graph, a: int, d: int) -> bool:
    """Whether a path leads from a to d in an acyclic graph."""
    return a in graph[d] or any(_reaches(graph, a, j) for j in graph[d])


def _crowded(case: Case, graph: Graph) -> str | None:
    limits = case.constraints.get("max_children", {})
    for j, name in enumerate(case.names):
        limit = limits.get(name, limits.get("*") if j < len(graph) - 1 else None)
        if limit is not None and sum(j in parents for parents in graph) > limit:
            return name
    return None


def too_many_features(case: Case, graph: Graph) -> bool:
    """Whether predictions depend on more features than the case allows."""
    last, most = len(case.names) - 1, case.constraints.get("max_features")
    families = [{i, *own} for i, own in enumerate(graph) if i == last or last in own]
    return most is not None and len(set().union(*families)) - 1 > most


def candidates(case: Case, child: int) -> list[Parents]:
    """Return the parent sets that a variable chooses from.

    These are all sets, wherever they differ in score. With ``parent_sets`` "paper", and by default under generative
    scores, a feature has the sets with the class in them, and of those without it the smallest that the constraints
    allow. The same set stands for all where they are alike.
    """
    last = len(case.names) - 1
    others = [j for j in range(last + 1) if j != child]
    most = min(case.score.get("max_parents", 2), last)
    sets = [s for k in range(most + 1) for s in combinations(others, k) if set_is_allowed(case, child, s)]
    if child == last or not (restricted(case) or sets_are_alike(case, child)):
        return sets
    free = [s for s in sets if last not in s]
    return [s for s in sets if last in s or not any(set(t) < set(s) for t in free)]


def structures(case: Case, most: int) -> list[Graph]:
    """Return every structure of the case.

    Raises
    ------
    TooManyError
        If there are more than `most`.
    """
    if case.problem in _last:
        return _last[case.problem]
    sets = [candidates(case, i) for i in range(len(case.names))]
    found: list[Graph] = []
    for graph in _extend(sets, ()):
        if _crowded(case, graph) is None and not too_many_features(case, graph) and obeys_paths(case, graph):
            found.append(graph)
        if len(found) > most:
            raise TooManyError
    _last.clear()
    _last[case.problem] = found
    return found


#: The structures of the problem that was enumerated last: cases are drawn by their number.
_last: dict[str, list[Graph]] = {}


def _extend(sets: list[list[Parents]], chosen: Graph) -> Iterator[Graph]:
    if len(chosen) == len(sets):
        yield chosen
        return
    for parents in sets[len(chosen)]:
        graph = (*chosen, parents)
        if is_acyclic(graph):
            yield from _extend(sets, graph)


def is_acyclic(graph: Graph) -> bool:
    """Whether parents can be taken away until nothing is left; variables beyond the graph have no parents yet."""
    left = set(range(len(graph)))
    while left:
        sources = {i for i in left if left.isdisjoint(graph[i])}
        if not sources:
            return False
        left -= sources
    return True


def sets_are_alike(case: Case, child: int | None = None) -> bool:
    """Whether all parent sets of a feature without the class score the same: margins alone.

    A feature with one state has no parameters, so that a penalty leaves its sets alike; all remain if asked for.
    """
    score = case.score
    free = child is not None and len(case.training.states[child]) == 1 and score.get("parent_sets") != "all"
    local = score.get("hybrid") or case.constraints.get("arc_weights") or (score.get("penalty") and not free)
    return is_margin(case) and not local


def has_least(case: Case, graph: Graph) -> bool:
    """Whether the features without the class have no parents that they need not have."""
    last = len(graph) - 1
    return not any(
        set_is_allowed(case, i, tuple(j for j in parents if j != k))
        for i, parents in enumerate(graph[:last])
        if last not in parents
        for k in parents
    )


def penalty_alone(case: Case) -> bool:
    """Whether margins and a penalty count, under which no class-free set adds more than a smaller one, for any data."""
    score = case.score
    rest = (
        score.get("hybrid")
        or case.constraints.get("arc_weights")
        or score.get("parent_sets", "auto") != "auto"
    )
    return is_margin(case) and bool(score.get("penalty")) and not rest


def restricted(case: Case) -> bool:
    """Whether the claims are only about structures in which features have the class as a parent or none."""
    asked = case.score.get("parent_sets", "auto")
    return not sets_are_alike(case) and (asked == "paper" or (asked == "auto" and not is_margin(case)))
