"""Optima that were proved before, by this project's prototype and by other solvers."""

from __future__ import annotations

import pytest
from oracle import enumerate_best
from running import require_backend

import milpbn
from milpbn.scores.spec import gamma_from_p

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
    return milpbn.read_table("car", data_dir=uci).dataset()


@pytest.mark.parametrize("acyclicity", ["order", "cluster"])
@pytest.mark.parametrize("case", CORRAL, ids=str)
def test_corral_by_highs(corral, case, acyclicity: str) -> None:
    check(corral, case, CORRAL[case], backend="highs", acyclicity=acyclicity)
