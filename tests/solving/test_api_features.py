"""At most K features in the Markov blanket of the class, against the enumeration of all structures."""

from dataclasses import replace

import numpy as np
import pytest
from exact_checks import _check_exactly as check_exactly
from oracle import enumerate_best, random_dataset
from running import BACKENDS

import milpbn
from milpbn import Constraints, InputError, Score
from milpbn.certificate.format import load_proof
from milpbn.certificate.verify.check import verify

#: Backends and acyclicity, scores with their options, and the name that the enumeration has for the score.
SEARCHES = {
    "native": ("native", Score(p=0.9)),
    "native, orders": ("native", Score(p=0.9, max_parents=3)),
    "native, leave-one-out": ("native", Score("cll", leave_one_out=True)),
    "branch-and-cut": ("branch-and-cut", Score("bdeu", max_parents=3, parent_sets="all")),
    **{f"{name}, sm": (name, Score(p=0.9)) for name in BACKENDS},
    "highs, cluster": ("highs", Score(p=0.9, max_parents=3)),
    "highs, cll": ("highs", Score("cll")),
    "highs, aicc": ("highs", Score("aicc", parent_sets="all")),
    "cpsat, mdl": ("cpsat", Score("mdl", parent_sets="all")),
    "scip, hard-margin": ("scip", Score("hard-margin")),
}


def blanket(parents):
    """Return the Markov blanket of the class, by its definition."""
    c = len(parents) - 1
    children = [i for i, own in enumerate(parents) if c in own]
    return {*parents[c], *children}.union(*(parents[i] for i in children)) - {c}


def optimum(data, score, most):
    """Return the best score of structures whose predictions depend on few features, by enumeration."""
    options = {"gamma": score.gamma} if score.is_margin and score.name != "cll" else {}
    more = {"leave_one_out": True} if score.leave_one_out else {}
    return enumerate_best(
        data,
        score.name,
        max_parents=score.max_parents,
        parent_sets="all",
        allowed=lambda parents: len(blanket(parents)) <= most,
        **options,
        **more,
    ).objective


@pytest.mark.parametrize("search", SEARCHES)
def test_the_best_structure_of_few_features_is_found_and_proved(search, tmp_path):
    backend, score = SEARCHES[search]
    if backend not in ("native", "branch-and-cut", *BACKENDS):
        pytest.skip(f"{backend} is not installed")
    options = {"acyclicity": "cluster"} if "cluster" in search else {}
    limited = 0
    seeds = 2 if search.endswith(", sm") else 4 if search == "scip, hard-margin" else 3
    for seed in range(seeds):
        data = random_dataset(np.random.default_rng([seed, 40]), 3, 2 + seed % 2, 2, 40)
        most = seed % 3
        best = optimum(data, score, most)
        limited += best < optimum(data, score, 3) - 1e-6
        asked = Constraints(max_features=most)
        proof = tmp_path / "proof.npz" if backend in ("native", "branch-and-cut") else None
        result = milpbn.solve(data, score, constraints=asked, backend=backend, certificate=proof, **options)
        assert result.optimal, seed
        assert result.objective == pytest.approx(best, abs=1e-6), seed
        assert result.bound >= best - 1e-6
        assert len(blanket(result.structure.parents)) <= most
        assert all(z is None or z <= best + 1e-6 for _, z, _ in result.trace)
        if proof is not None:
            assert verify(result, proof, data).bound >= best - 1e-9
            assert float(check_exactly(result, proof, data)[1]) >= best - 1e-9
    assert limited > 0


@pytest.mark.parametrize("name", ["sm", "bdeu"])
def test_a_proof_is_refused_for_a_smaller_limit(name, tmp_path):
    score = Score(name, max_parents=3, **({"parent_sets": "all"} if name == "bdeu" else {"p": 0.99}))
    data, proof = random_dataset(np.random.default_rng(41), 5, 2, 2, 60), tmp_path / "proof.npz"
    result = milpbn.solve(data, score, constraints=Constraints(max_features=3), certificate=proof, threads=1)
    assert result.optimal
    assert verify(result, proof, data).bound >= result.objective - 1e-9
    assert float(check_exactly(result, proof, data)[1]) >= result.objective - 1e-9
    others = {**load_proof(proof)[0], "constraints": {**result.constraints.to_dict(), "max_features": 2}}
    with pytest.raises(InputError):
        verify(others, proof, data)


def test_k_best_structures_and_a_continued_search_obey_the_limit(tmp_path):
    data = random_dataset(np.random.default_rng(42), 4, 2, 2, 50)
    asked = Constraints(max_features=2)
    found = milpbn.solve(data, Score(p=0.9), constraints=asked, n_best=5)
    listed = found.alternatives.structures
    assert len(listed) == 5
    assert all(len(blanket(one.structure.parents)) <= 2 for one in listed)
    state, options = tmp_path / "state.npz", {"constraints": asked, "checkpoint": tmp_path / "state.npz"}
    calls = iter(range(1000))
    milpbn.solve(data, Score(p=0.9), interrupted=lambda: next(calls) > 3, **options)
    assert state.exists()
    again = milpbn.solve(data, Score(p=0.9), **options)
    assert again.objective == pytest.approx(found.objective, abs=1e-9)
    with pytest.raises(InputError, match="checkpoint"):
        milpbn.solve(data, Score(p=0.9), constraints=Constraints(max_features=1), checkpoint=state)


def test_a_start_or_data_that_cannot_have_the_limit_get_a_sentence():
    data = random_dataset(np.random.default_rng(43), 3, 2, 2, 30)
    naive = milpbn.Structure.naive_bayes(data.names)
    with pytest.raises(InputError, match="predictions depend on 3 features, more than 1"):
        milpbn.solve(data, Score(), constraints=Constraints(max_features=1), start=naive)
    with pytest.raises(InputError, match="have no class"):
        milpbn.solve(replace(data, has_class=False), Score("bdeu"), constraints=Constraints(max_features=1))
    every = tuple((data.names[-1], name) for name in data.names[:-1])
    with pytest.raises(InputError, match="at most 2 features"):
        milpbn.solve(data, Score(), constraints=Constraints(required=every, max_features=2))


def test_files_keep_the_limit():
    asked = Constraints(max_features=0)
    assert asked
    assert Constraints.from_dict(asked.to_dict()) == asked
    assert "max_features" not in Constraints().to_dict()
    for wrong in ("3", -1, True):
        with pytest.raises(InputError, match="'max_features'"):
            Constraints.from_dict({"max_features": wrong})
