"""The smallest valid model."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import random_data

import milpbn
from milpbn.claims.result import NotSavedError, Result
from milpbn.solving.options import Options
from milpbn.solving.smallest import smallest_model

OPTIONS = Options(threads=1, verbose=False)


@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "ll", "mdl", "aicc", "bdeu"])
def test_score_and_bound_are_valid(name: str) -> None:
    data = random_data(3)
    score = milpbn.Score(name=name)
    result = smallest_model(data, score, OPTIONS)
    assert result.structure == milpbn.Structure.empty(data.names)
    assert result.objective == pytest.approx(milpbn.rescore(data, result.structure, score))
    best = milpbn.solve(data, score, threads=1, verbose=False)
    assert best.objective is not None
    assert result.objective <= best.objective + 1e-9
    assert result.bound is None or result.bound >= best.objective - 1e-9
    assert (result.reason, result.limit) == ("feasible", "time")
    assert result.classifier is not None


def test_constraints_are_obeyed() -> None:
    data = random_data(3)
    a, b, *_ = data.names
    constraints = milpbn.Constraints(required=[(a, b)])
    result = smallest_model(data, milpbn.Score(), OPTIONS, constraints=constraints)
    assert result.structure is not None
    assert a in result.structure.to_mapping()[b]
    assert sum(map(len, result.structure.parents)) <= 2
    with pytest.raises(milpbn.InputError):
        smallest_model(
            data, milpbn.Score(), OPTIONS, constraints=milpbn.Constraints(required=[(a, b), (b, a)])
        )


def test_the_result_is_saved(tmp_path: Path) -> None:
    data = random_data(3)
    options = Options(threads=1, output=tmp_path / "result.json", parameters="cll")
    result = smallest_model(data, milpbn.Score(), options)
    assert Result.load(tmp_path / "result.json").to_dict() == result.to_dict()
    assert result.parameters is not None
    assert "time limit ended" in result.parameters.note
    with pytest.raises(NotSavedError) as caught:
        smallest_model(data, milpbn.Score(), Options(threads=1, output=tmp_path / "no" / "result.json"))
    assert caught.value.result.objective == result.objective
