"""Constraints on paths and independences against the enumeration of all structures."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from oracle import enumerate_best, random_dataset

import milpbn
from milpbn import Constraints, InputError, Score

#: Backend, score, and options that each runs with.
SEARCHES = {
    "branch-and-cut": ("bdeu", {}),
    "branch-and-cut, class": ("bic", {}),
    "highs": ("bdeu", {}),
    "highs, cluster": ("bdeu", {"acyclicity": "cluster"}),
    "native": ("sm", {}),
    "highs, sm": ("sm", {}),
}


def drawn(rng, names):
    """Return one or two random constraints on paths, of kinds that may exclude each other."""
    found = {"ancestors": [], "no_ancestors": [], "independences": []}
    for _ in range(rng.integers(1, 3)):
        a, b, *others = map(str, rng.permutation(names))
        kind = rng.choice(list(found))
        given = tuple(others[: rng.integers(0, 3)])
        found[kind].append((a, b, given) if kind == "independences" else (a, b))
    return Constraints(**{key: tuple(values) for key, values in found.items()})


def obeys(parents, names, asked):
    """Return whether a structure obeys constraints on paths, by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[j], names[i]) for i, own in enumerate(parents) for j in own)
    return (
        all(nx.has_path(graph, a, b) for a, b in asked.ancestors)
        and not any(nx.has_path(graph, a, b) for a, b in asked.no_ancestors)
        and all(nx.is_d_separator(graph, {a}, {b}, set(given)) for a, b, given in asked.independences)
    )


def check(seed, search):
    """Compare a search with the enumeration; return whether some structure obeys the constraints."""
    score, options = SEARCHES[search]
    rng = np.random.default_rng(seed)
    data = random_dataset(rng, 3, 2, 2, 40)
    data = data if score == "sm" or "class" in search else replace(data, has_class=False)
    asked = drawn(rng, data.names)
    spec = Score(score, max_parents=int(rng.integers(1, 4)), parent_sets="auto" if score == "sm" else "all")
    best = enumerate_best(
        data,
        {"bic": "mdl"}.get(score, score),
        max_parents=spec.max_parents,
        parent_sets="all",
        allowed=lambda parents: obeys(parents, data.names, asked),
        **({"gamma": spec.gamma} if score == "sm" else {}),
    )
    try:
        result = milpbn.solve(data, spec, constraints=asked, backend=search.split(",")[0], **options)
    except InputError:
        assert not best.structures, asked
        return False
    if not best.structures:
        assert result.reason == "infeasible", asked
        return False
    assert result.optimal, asked
    assert result.objective == pytest.approx(best.objective, abs=1e-6), asked
    assert obeys(result.structure.parents, data.names, asked)
    return True


@pytest.mark.parametrize("search", SEARCHES)
def test_the_best_structure_that_obeys_constraints_on_paths_is_found(search):
    found = [check(seed, search) for seed in range(12)]
    assert sum(found) > 0


def test_paths_that_no_parent_sets_admit_are_infeasible():
    data = replace(random_dataset(np.random.default_rng(1), 3, 2, 2, 40), has_class=False)
    asked = Constraints(ancestors=(("X1", "X2"),), forbidden=tuple(("X1", b) for b in ("X2", "X3", "C")))
    for backend in ("branch-and-cut", "highs"):
        result = milpbn.solve(data, "bdeu", constraints=asked, backend=backend)
        assert (result.reason, result.structure) == ("infeasible", None)


def test_a_list_ends_when_all_structures_that_separate_two_variables_are_in_it():
    data = replace(random_dataset(np.random.default_rng(1), 3, 2, 2, 40), has_class=False)
    asked = Constraints(independences=(("X1", "C", ()),))
    result = milpbn.solve(data, Score("bdeu", max_parents=3), constraints=asked, n_best=1000, time_limit=20)
    assert result.alternatives.exhausted
    assert len(result.alternatives.structures) == 92
    assert all(obeys(one.structure.parents, data.names, asked) for one in result.alternatives.structures)
