"""The claim about the K best structures in ``result.json``: it is read as it was written, or refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from running import random_data

from milpbn import solve
from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import closing_block


@pytest.fixture(scope="module")
def result() -> Result:
    return solve(random_data([5, 5], n_samples=40), Score(p=0.9), n_best=4, verbose=False, threads=1)


def test_the_claim_is_read_as_it_was_written(result: Result) -> None:
    again = Result.from_dict(result.to_dict())
    assert again.alternatives == result.alternatives
    assert again.alternatives is not None
    assert len(again.alternatives.structures) == again.alternatives.asked == 4
    assert again.alternatives.structures[0].structure == again.structure


def test_files_of_earlier_versions_have_no_such_claim(result: Result) -> None:
    values = result.to_dict()
    del values["alternatives"]
    assert Result.from_dict(values).alternatives is None


def test_the_closing_block_lists_the_structures(result: Result) -> None:
    claim = result.alternatives
    assert claim is not None
    text = closing_block(result)
    assert f"best 4     proved: no other structure scores more than {claim.bound:.6f}" in text
    assert f"        4  {claim.structures[3].objective:.6f}  but " in text
    for group in claim.markov_equivalent:
        assert f"{group[-2]} and {group[-1]} are Markov equivalent" in text


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "too few asked": ({"asked": 3}, "lists 4 structures, where 3 were asked for"),
    "order": ({"structures": [0, 2, 1, 3]}, "scores more than one before it"),
    "twice": ({"structures": [0, 1, 1, 3]}, "listed twice"),
    "another first": ({"structures": [1, 2, 3]}, "first structure of the list is not that of the result"),
    "none": ({"structures": []}, "first structure of the list is not that of the result"),
    "exhausted": ({"exhausted": True}, "bounds other structures, and says that there are none"),
    "low bound": ({"bound": 1.0}, "is below the last one's score"),
    "high bound": ({"bound": 1e6, "optimal": False}, "above its bound on all"),
    "not proved": ({"bound": None}, "calls the list the best one"),
    "number": ({"same_posteriors": [[1, 5]]}, "same_posteriors"),
    "alone": ({"markov_equivalent": [[1]]}, "disjoint groups of two or more"),
    "in two groups": ({"markov_equivalent": [[1, 2], [2, 3]]}, "disjoint groups of two or more"),
    "unknown key": ({"best": True}, "unknown key 'best'"),
}


@pytest.mark.parametrize("changes", CONTRADICTIONS)
def test_what_cannot_be_true_is_refused(result: Result, changes: str) -> None:
    values = copy.deepcopy(result.to_dict())
    changed, words = CONTRADICTIONS[changes]
    claim = values["alternatives"]
    listed = claim["structures"]
    claim |= changed
    if "structures" in changed:
        claim["structures"] = [listed[k] for k in changed["structures"]]
    with pytest.raises(InputError, match=words):
        Result.from_dict(values)


def test_a_list_beside_a_subset_is_refused(result: Result) -> None:
    values = result.to_dict() | {"bound": None, "proved": None, "trace": []}
    values["gap"] = dict.fromkeys(values["gap"])
    values["status"] = {"reason": "feasible", "limit": "time", "detail": ""}
    numbers = {"objective": result.objective, "bound": None, "gap": values["gap"], "optimal": False}
    with pytest.raises(InputError, match="lists the best structures of all"):
        Result.from_dict(values | {"subset": {"samples": 5, **numbers}})
