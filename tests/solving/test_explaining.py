"""Explanations of results: what is proved of the arcs, gains and alternatives, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from running import random_data

import milpbn
from milpbn.claims.parts import ProvedArcs
from milpbn.errors import InputError
from milpbn.solving.explaining import explain_result


@pytest.fixture(scope="module")
def solved():
    data = random_data(2, n_features=3, n_samples=30)
    return data, milpbn.solve(data, milpbn.Score(p=0.9), backend="native", threads=1, verbose=False)


def test_an_optimum_has_no_better_neighbour(solved):
    data, result = solved
    assert result.optimal
    found = explain_result(result, data, alternatives=5)
    assert found.objective == pytest.approx(result.objective, abs=1e-9)
    assert len(found.alternatives) == 5
    assert all(alternative.loss > -1e-6 for alternative in found.alternatives)
    assert {tuple(arc) for arc in found.to_dict()["arcs"]} == set(found.arcs)
    json.dumps(found.to_dict(), allow_nan=False)


def test_proved_arcs_are_told_apart(solved):
    data, result = solved
    arcs = explain_result(result, data).arcs
    some = replace(result, proved=ProvedArcs((arcs[0],), (("X1", "C"),)))
    lines = str(explain_result(some, data)).splitlines()
    assert lines[0] == f"arcs: 1 of {len(arcs)} are in every optimum; 1 other arcs are in none"
    assert lines[1] == f"  {arcs[0][0]} -> {arcs[0][1]}  in every optimum"
    assert lines[2].endswith("not known to be in every optimum")
    assert "whether every optimum has it" in str(explain_result(replace(result, proved=None), data))


def test_other_data_and_missing_structures_are_refused(solved):
    data, result = solved
    with pytest.raises(InputError, match="of other data"):
        explain_result(result, random_data(3, n_features=3, n_samples=30))
    nothing = replace(
        result, reason="no_solution", limit="time", structure=None, objective=None, proved=None, trace=()
    )
    with pytest.raises(InputError, match="has no structure"):
        explain_result(nothing, data)
