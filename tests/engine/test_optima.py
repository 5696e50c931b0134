"""The arcs that every optimum has, and those that none has, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from running import optimum, random_data

from milpbn.certificate.verify.check import verify
from milpbn.engine.optima import Optima
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve

SCORES = [
    Score(p=0.9),
    Score(p=0.8, class_parents=False),
    Score(name="sbm", p=0.9),
    Score(name="cll"),
    Score(p=0.9, max_parents=3),
]


@pytest.mark.parametrize("score", SCORES, ids=lambda s: f"{s.name}-{s.max_parents}-{s.class_parents}")
@pytest.mark.parametrize("reduce", [True, False], ids=["reduced", "whole"])
def test_listed_arcs_are_those_of_all_optima(score, reduce, tmp_path):
    listed = true = 0
    path = tmp_path / "proof.npz"
    for seed in (0, 2, 3):
        data = random_data([seed, 41], n_features=4 if score.max_parents == 2 else 3, n_samples=40)
        rules = Constraints(max_children={"X1": 1}) if seed % 4 == 3 else Constraints()
        result = solve(
            data,
            score,
            constraints=rules,
            backend="native",
            threads=1,
            reduce=reduce,
            certificate=path,
            verbose=False,
        )
        assert result.optimal
        if result.proved is None:
            continue
        names = data.names
        optima = [
            {(names[j], names[i]) for i, parents in enumerate(structure) for j in parents}
            for structure in optimum(data, score, rules).structures
        ]
        parent, child, _ = build_problem(data, score, rules).candidates.arcs
        arcs = {(names[j], names[i]) for j, i in zip(parent, child, strict=True)}
        inside, outside = set.intersection(*optima), arcs - set.union(*optima)
        found = {"in": set(result.proved.inside), "out": set(result.proved.outside)}
        assert found["in"] <= inside
        assert found["out"] <= outside
        listed += len(found["in"]) + len(found["out"])
        true += len(inside) + len(outside)
        checked = verify(result, path, data)
        assert (checked.arcs_in, checked.arcs_out) == (len(found["in"]), len(found["out"]))
        for key, others in (("in", outside), ("out", inside)):
            for arc in sorted(others)[seed % 4 :: 4]:  # they are checked one by one, and alike
                false = {**result.to_dict(), "proved": {**result.proved.to_dict(), key: [list(arc)]}}
                with pytest.raises(InputError, match=r"does not prove|and none, has"):
                    verify(false, path, data)
    assert true > 15
    assert listed > (0.6 if reduce else 0.05) * true


def test_nodes_below_a_better_incumbent_are_ignored():
    candidates = build_problem(random_data(1), Score(p=0.9, class_parents=False)).candidates
    optima = Optima(candidates, 0.0)
    every = np.ones(candidates.n_sets, dtype=bool)
    one = np.zeros_like(every)
    one[candidates.offsets[:-1]] = True
    optima.add(every, 10.0, 10.0)
    assert optima.arcs() == {"in": [], "out": []}
    optima.add(one, 11.0, 11.0)
    parent, _, entry = candidates.arcs
    assert len(optima.arcs()["in"]) == int(one[entry].sum())
    arcs = set(zip(parent, candidates.variable[entry], strict=True))
    assert len(optima.arcs()["in"]) + len(optima.arcs()["out"]) == len(arcs)
    optima.add(every, 10.5, 11.0)
    assert optima.arcs()["out"]
