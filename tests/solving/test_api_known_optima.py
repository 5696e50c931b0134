"""Optima that were proved before, by this project's prototype and by other solvers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import oracle
import pytest
from running import require_backend

import milpbn
from milpbn.data.dataset import Dataset
from milpbn.network.structure import topological_order
from milpbn.problem.scores.spec import gamma_from_p

#: score, max_parents, p, class parents: optimum. Corral has two classes, where SM = SBM.
CORRAL = {
    ("sm", 2, 0.9, False): 261.127228,
    ("sm", 2, 0.9, True): 261.134800,
    ("sm", 2, 0.99, False): 414.493534,
    ("sm", 2, 0.99, True): 414.493534,
    ("sbm", 2, 0.9, False): 261.127228,
    ("sbm", 2, 0.9, True): 261.134800,
    ("sbm", 2, 0.99, False): 414.493534,
    ("sbm", 2, 0.99, True): 414.493534,
    ("sm", 3, 0.9, False): 268.754859,
    ("sm", 3, 0.9, True): 268.754859,
    ("sm", 3, 0.99, False): 431.285608,
    ("sm", 3, 0.99, True): 431.285608,
}
CAR = {
    ("sm", 2, 0.9, False): 2952.250582,
    ("sm", 2, 0.9, True): 2964.955380,
    ("sm", 2, 0.99, False): 5341.518973,
    ("sm", 2, 0.99, True): 5341.518973,
    ("sbm", 2, 0.9, False): 2679.157966,
    ("sbm", 2, 0.9, True): 2699.643871,
    ("sbm", 2, 0.99, False): 5134.606038,
    ("sbm", 2, 0.99, True): 5139.203566,
}
CAR_3 = {("sm", 3, 0.9, False): 3222.222082, ("sm", 3, 0.99, False): 5709.754823}


def _with_slow(cases, is_slow) -> list:
    """Mark the cases that take as long as all others, or that a solver does not need in every run."""
    return [pytest.param(c, marks=pytest.mark.slow if is_slow(c) else (), id=str(c)) for c in cases]


def _every_other(case) -> bool:
    """Of the four cases of a score and a number of parents, one per p and one with class parents remain."""
    return (case[2] == 0.9) == case[3]


def check(data, case: tuple[str, int, float, bool], expected: float, **options) -> milpbn.Result:
    name, max_parents, p, class_parents = case
    score = milpbn.Score(name=name, max_parents=max_parents, p=p, class_parents=class_parents)
    result = milpbn.solve(data, score, **options)
    assert result.optimal
    # The figures have six decimals.
    assert result.objective == pytest.approx(expected, abs=1e-6)
    assert result.bound >= expected - 1e-6
    return result


@pytest.fixture(scope="module")
def corral():
    return milpbn.read_table("corral").dataset()


@pytest.fixture(scope="module")
def car(uci):
    return milpbn.read_table("car", data_dir=uci).dataset("all")


@pytest.mark.parametrize("case", _with_slow(CORRAL, lambda case: case[0] == "sbm" or _every_other(case)))
def test_corral_by_highs_has_its_known_optimum(corral, case) -> None:
    check(corral, case, CORRAL[case], backend="highs", root_bound=False)


@pytest.mark.parametrize(
    ("data", "case", "expected"),
    [
        *(
            pytest.param(
                "corral", case, value, marks=pytest.mark.slow if case == ("sm", 3, 0.9, True) else ()
            )
            for case, value in CORRAL.items()
        ),
        *(("car", case, value) for case, value in (CAR | CAR_3).items()),
    ],
    ids=str,
)
def test_the_native_engine_finds_the_known_optima(request, data, case, expected) -> None:
    result = check(request.getfixturevalue(data), case, expected, backend="native")
    assert result.bound_source == "certified"


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CORRAL if c[0] == "sm"], ids=str)
def test_corral_by_highs_with_clusters_has_its_known_optimum(corral, case) -> None:
    check(corral, case, CORRAL[case], backend="highs", acyclicity="cluster")


@pytest.mark.parametrize("backend", ["cbc", "scip"])
@pytest.mark.parametrize(
    "case", _with_slow([c for c in CORRAL if c[0] == "sm"], lambda case: case[1] == 3 or _every_other(case))
)
def test_corral_by_other_solvers_has_its_known_optimum(corral, case, backend: str) -> None:
    require_backend(backend)
    check(corral, case, CORRAL[case], backend=backend, root_bound=False)


@pytest.mark.parametrize(
    "case",
    _with_slow([(n, c) for n in ("sm", "sbm") for c in (False, True)], lambda case: case != ("sm", False)),
)
def test_corral_by_enumeration_has_its_known_optimum(corral, case: tuple[str, bool]) -> None:
    name, class_parents = case
    best = dict.fromkeys((0.9, 0.99), -np.inf)
    for margins in all_margins(corral.merged, name, class_parents):
        for p in best:
            best[p] = max(best[p], corral.merged.weights @ np.minimum(margins, gamma_from_p(p)))
    for p, value in best.items():
        assert value == pytest.approx(CORRAL[name, 2, p, class_parents], abs=1e-6)


def all_margins(data: Dataset, name: str, class_parents: bool) -> Iterator[np.ndarray]:
    """Yield the log-margins of the samples under every structure with at most two parents a variable.

    The log-probabilities are the oracle's; they are summed along a depth-first search over the features.
    """
    problem = oracle._Problem(data, name, gamma=1.0)
    sets = oracle.candidate_sets(data.n_variables, 2, class_parents)
    terms = []
    for i, own in enumerate(sets):
        arrays = [np.array(problem.rival_terms(i, s)) for s in own]
        terms.append([a[:, :1] - a[:, 1:] for a in arrays])

    def extend(parents: list[tuple[int, ...]], total: np.ndarray, i: int) -> Iterator[np.ndarray]:
        if i == data.n_features:
            yield total.min(axis=1)
            return
        for s, term in zip(sets[i], terms[i], strict=True):
            parents[i] = s
            if topological_order(parents) is not None:
                yield from extend(parents, total + term, i + 1)
        parents[i] = ()

    for s, term in zip(sets[-1], terms[-1], strict=True):
        yield from extend([*([()] * data.n_features), s], term, 0)


@pytest.mark.parametrize("case", _with_slow(CAR, lambda case: case != ("sm", 2, 0.9, False)))
def test_car_by_highs_has_its_known_optimum(car, case) -> None:
    check(car, case, CAR[case], backend="highs")


@pytest.mark.slow
@pytest.mark.parametrize("case", CAR_3, ids=str)
def test_car_with_three_parents_by_highs_has_its_known_optimum(car, case) -> None:
    check(car, case, CAR_3[case], backend="highs")


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.9, 0.99])
def test_solvers_agree_on_heart(uci, p: float) -> None:
    data = milpbn.read_table("heart", data_dir=uci).dataset("all")
    score = milpbn.Score(p=p, class_parents=False)
    found = {}
    for backend in ("highs", "cbc", "scip"):
        require_backend(backend)
        result = milpbn.solve(data, score, backend=backend)
        assert result.optimal
        found[backend] = result.objective
    assert max(found.values()) - min(found.values()) <= 1e-6 * found["highs"], found
