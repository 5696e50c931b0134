"""Forecasts of memory from what is admitted agree with those from lists, and name options that help."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
from running import random_constraints, random_data

from milpbn.errors import InputError
from milpbn.problem import forecast
from milpbn.problem.candidates import admitted_sets, build_candidates
from milpbn.problem.constraints import Rules, atoms, combine
from milpbn.problem.forecast import extent, require_fit, tables_bytes, tensor_bytes
from milpbn.problem.scores.spec import Score
from milpbn.util import memory


@pytest.mark.parametrize("seed", range(12))
def test_what_is_admitted_is_counted_as_if_it_were_listed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(seed, n_features=6, max_states=4, n_samples=20).merged
    monkeypatch.setattr(forecast, "cell_limit", lambda n_samples: 12)
    score = Score(max_parents=seed % 4 + 1, class_parents=seed % 2 == 0, leave_one_out=seed % 3 == 0)
    given = random_constraints(np.random.default_rng(seed), data.names)
    rules = Rules() if seed < 6 else combine(atoms(given, data.names))
    listed = extent(data, build_candidates(data.names, score, rules))
    counted = extent(data, admitted_sets(6, score, rules))
    assert counted[:2] == listed[:2]
    assert counted.numbered >= listed.numbered
    if seed < 6:
        assert counted == listed
        states = data.n_states[:6].tolist()
        assert listed.numbered <= sum(
            prod(states[j] for j in s) > 12 for r in range(1, 7) for s in combinations(range(6), r)
        )


def refusal(monkeypatch: pytest.MonkeyPatch, available: int, score: Score, for_milp: bool) -> str:
    data = random_data(1, n_features=40, max_states=3, n_samples=300).merged
    admitted = admitted_sets(40, score, Rules())
    for module in (memory, forecast):
        monkeypatch.setattr(module, "available_memory", lambda: available)
    with pytest.raises(InputError) as refused:
        require_fit(data, score, admitted, Rules(), for_milp=for_milp)
    return str(refused.value)


def test_a_refusal_names_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(1, n_features=40, max_states=3, n_samples=300).merged
    two, three = Score(max_parents=2), Score(max_parents=3)
    tables, model = tables_bytes(data, admitted_sets(40, three, Rules()), three), 0
    model = tensor_bytes(data, admitted_sets(40, two, Rules()), two)
    said = refusal(monkeypatch, 2 * tables, three, True)
    assert "use milpbn solve --backend native, which needs no model" in said
    assert "--screen 100" not in said
    said = refusal(monkeypatch, tables // 2, three, False)
    assert "--screen 100" in said
    assert "reduce --max-parents to 2" in said
    assert "native" not in said
    said = refusal(monkeypatch, 20_000, three, False)
    assert said.endswith("; take fewer features or rows.")
    assert "--max-parents to" not in refusal(monkeypatch, model // 100, two, True)
