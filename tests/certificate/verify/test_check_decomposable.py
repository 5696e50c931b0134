"""Certificates of decomposable scores, whose terms both verifiers compute from the data."""

from itertools import product

import pytest
from running import random_data

from milpbn import solve
from milpbn.certificate.exact.arithmetic import NotProvedError
from milpbn.certificate.exact.check import check as check_exactly
from milpbn.certificate.verify.check import verify
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score

SCORES = [
    Score(name="ll", parent_sets="all"),
    Score(name="ll", max_parents=3, leave_one_out=True, smoothing=0.5),
    Score(name="mdl", parent_sets="all"),
    Score(name="aic", max_parents=1),
    Score(name="bdeu", parent_sets="all", equivalent_sample_size=3.0, max_parents=3),
    Score(name="bdeu", class_parents=False),
]
RULES = [
    Constraints(),
    Constraints(max_children={"*": 1}, arc_weights={("X2", "X3"): 1.5}),
    Constraints(fixed={"X3": ("C",)}, required=(("X1", "X2"),)),
    Constraints(ancestors=(("X2", "X1"),), independences=(("X1", "X3", ("C",)),)),
    Constraints(no_ancestors=(("C", "X2"), ("X1", "X3"))),
]


@pytest.mark.parametrize(("score", "rules"), list(product(SCORES, RULES))[::2])
def test_both_verifiers_accept_what_the_search_claims(score, rules, tmp_path):
    data = random_data(3, n_samples=60)
    path = tmp_path / "proof.npz"
    result = solve(data, score, constraints=rules, certificate=path, verbose=False)
    assert result.optimal
    proved = verify(result, path, data)
    assert proved.bound == result.bound
    assert proved.nodes >= proved.leaves > 0
    (low, high), _ = check_exactly(result.to_dict(), path, data)
    assert low <= result.objective + 1e-9
    assert result.objective - 1e-9 <= high
    told = result.to_dict() | {"bound": result.objective - 1e-3, "objective": result.objective - 1e-3}
    with pytest.raises(InputError):
        verify(told, path, data)
    with pytest.raises(NotProvedError):
        check_exactly(told, path, data)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("proved", {"in": [["X1", "X2"]], "out": []}, "proves nothing about the arcs"),
        ("tolerance", 1e-3, "takes a gap of"),
        ("run", "another", "another run"),
    ],
)
def test_other_claims_are_refused(key, value, words, tmp_path):
    data = random_data(4, n_samples=60)
    path = tmp_path / "proof.npz"
    result = solve(data, Score(name="bdeu"), certificate=path, verbose=False).to_dict()
    with pytest.raises(InputError, match=words):
        verify({**result, key: value}, path, data)


def test_what_has_no_certificate_is_refused(tmp_path):
    data = random_data(5, n_samples=60)
    for options, words in (
        ({"backend": "highs"}, "native and branch-and-cut, not with highs"),
        (
            {"score": Score(), "constraints": Constraints(ancestors=(("X1", "X2"),)), "backend": "highs"},
            "cannot hold constraints on paths",
        ),
    ):
        with pytest.raises(InputError, match=words):
            solve(
                data,
                **{"score": Score(name="mdl"), **options},
                certificate=tmp_path / "proof.npz",
                verbose=False,
            )


@pytest.mark.parametrize("options", [{"root_only": True}, {"n_best": 4}, {"within": 3.0}, {"n_best": 1000}])
def test_bounds_and_lists_are_proved(options, tmp_path):
    data, path = random_data(7, n_samples=60), tmp_path / "proof.npz"
    for rules in (Constraints(), Constraints(ancestors=(("X1", "C"),))):
        score = Score(name="bdeu", max_parents=1)
        result = solve(data, score, constraints=rules, certificate=path, verbose=False, **options)
        proved = verify(result, path, data)
        check_exactly(result.to_dict(), path, data)
        assert proved.bound == result.bound
        listed = result.alternatives
        assert (proved.listed, listed is None) in ((None, True), (listed and len(listed.structures), False))
        if listed is not None and len(listed.structures) > 1:
            assert listed.optimal
            told = result.to_dict()
            last = told["alternatives"]["structures"].pop()
            told["alternatives"] |= {"asked": 2000, "optimal": False, "exhausted": False, "within": None}
            told["alternatives"] |= {"bound": last["objective"] - 0.01, "same_posteriors": []}
            told["alternatives"]["markov_equivalent"] = []
            told["status"] = {"reason": "running", "limit": None, "detail": ""}
            with pytest.raises(InputError, match="only proves"):
                verify(told, path, data)
            with pytest.raises(NotProvedError, match="not proved"):
                check_exactly(told, path, data)
