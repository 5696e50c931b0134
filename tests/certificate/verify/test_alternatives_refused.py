"""Both verifiers refuse false claims about the K best structures; `test_api_oracle` has true ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from running import optimum, random_data

from milpbn import solve
from milpbn.certificate.exact.arithmetic import NotProvedError
from milpbn.certificate.exact.check import check as check_exactly
from milpbn.certificate.verify.check import verify
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.equivalence import markov_equivalent, posteriors_of, same_posteriors
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score

SCORE = Score(p=0.9)
K = 5


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory):
    """Data, the contents of a result with the K best structures, its certificate, and the K + 3 best by enumeration."""
    path = tmp_path_factory.mktemp("alternatives") / "proof.npz"
    data = random_data([5, 5], n_features=3, n_samples=40)
    result = solve(data, SCORE, n_best=K, certificate=path, verbose=False, threads=1)
    assert verify(result, path, data).listed == K
    return data, result.to_dict(), path, optimum(data, SCORE, most=K + 3).ranked


def _regrouped(claim: dict[str, Any], data: Dataset) -> None:
    """Make the groups true, so that a list is refused for another reason."""
    listed = [Structure.from_mapping(data.names, one["structure"]) for one in claim["structures"]]
    claim["same_posteriors"] = same_posteriors(posteriors_of(data, listed, 1.0, "uniform"))
    claim["markov_equivalent"] = markov_equivalent(listed)


def _without_the_second(claim: dict[str, Any]) -> None:
    del claim["structures"][1]
    claim["asked"] = K - 1


def _other_score(claim: dict[str, Any]) -> None:
    claim["structures"][1]["objective"] = claim["structures"][0]["objective"]


def _not_sorted(claim: dict[str, Any]) -> None:
    claim["structures"][1:] = reversed(claim["structures"][1:])


def _exhausted(claim: dict[str, Any]) -> None:
    claim |= {"exhausted": True, "bound": None}


def _twice(claim: dict[str, Any]) -> None:
    claim["structures"][2] = claim["structures"][1]


def _cycle(claim: dict[str, Any]) -> None:
    claim["structures"][2]["structure"] |= {"X1": ["X2", "C"], "X2": ["X1", "C"]}


def _other_groups(claim: dict[str, Any]) -> None:
    claim["same_posteriors"] = [[1, K]] if not claim["same_posteriors"] else []


@pytest.mark.parametrize(
    ("forge", "words", "exactly"),
    [
        (_without_the_second, "structures of node .* that are not listed", "not listed is not proved"),
        (_other_score, "Structure 2 of the list scores", "A structure of the list scores"),
        (_not_sorted, "scores more than one before it", None),
        (_exhausted, "structures of node .* that are not listed|removes parent set", "list of all|removes"),
        (_twice, "listed twice", "has a structure twice"),
        (_cycle, "cycle", "A structure of the list"),
        (_other_groups, "Other structures of the list have the same posteriors", None),
    ],
)
def test_a_false_list_is_refused(
    case, forge: Callable[[dict[str, Any]], None], words: str, exactly: str | None
) -> None:
    data, values, path, _ = case
    forged = copy.deepcopy(values)
    forge(forged["alternatives"])
    if forge is _without_the_second:
        _regrouped(forged["alternatives"], data)
    with pytest.raises(InputError, match=words):
        verify(forged, path, data)
    if exactly is not None:  # order and groups are no part of the exact check
        with pytest.raises(NotProvedError, match=exactly):
            check_exactly(forged, path, data)


def test_a_list_with_a_worse_structure_in_place_of_the_last_is_refused(case) -> None:
    data, values, path, ranked = case
    forged = copy.deepcopy(values)
    claim = forged["alternatives"]
    value, parents = ranked[K + 2]
    names = data.names
    claim["structures"][-1] = {
        "objective": value,
        "structure": {name: [names[j] for j in own] for name, own in zip(names, parents, strict=True)},
    }
    claim["bound"] = value
    _regrouped(claim, data)
    with pytest.raises(InputError, match=r"removes parent set|structures of node .* that are not listed"):
        verify(forged, path, data)
    with pytest.raises(NotProvedError, match=r"removes|not listed is not proved"):
        check_exactly(forged, path, data)


def test_a_certificate_of_one_structure_does_not_prove_a_list(case, tmp_path) -> None:
    """Its fixings leave out structures that score less than the best one."""
    data, values, _, _ = case
    path = tmp_path / "one.npz"
    plain = solve(data, SCORE, certificate=path, verbose=False, threads=1)
    forged = plain.to_dict() | {"alternatives": values["alternatives"]}
    forged["alternatives"]["structures"][0]["objective"] = plain.objective
    if forged["structure"] == forged["alternatives"]["structures"][0]["structure"]:
        with pytest.raises(InputError, match=r"removes parent set|structures of node .* that are not listed"):
            verify(forged, path, data)
