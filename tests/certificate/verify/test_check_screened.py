"""Certificates of searches over screened parent sets: they prove the bound over the kept sets, and no other bound."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from running import heavy_enough, optimum, random_data

from milpbn import Structure, rescore, solve
from milpbn.certificate.exact.arithmetic import NotProvedError
from milpbn.certificate.exact.check import check as check_exactly
from milpbn.certificate.format import certificate_header, load_proof, save_certificate
from milpbn.certificate.verify.check import verify
from milpbn.claims.gap import Gap
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score

K = 6
SCORES = [
    Score(p=0.95, max_parents=3),
    Score(name="sbm", p=0.95, max_parents=3, class_parents=False),
    Score(name="cll", max_parents=3, class_parents=False),
    Score(p=0.9, max_parents=3, leave_one_out=True, class_parents=False),
]


def searched(data: Dataset, score: Score, path, **options):
    return solve(data, score, **{"threads": 1, "verbose": False, "certificate": path, "screen": K, **options})


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A result over kept parent sets with an open gap, and its certificate's header and arrays."""
    path = tmp_path_factory.mktemp("screened") / "proof.npz"
    data = random_data(7, n_features=4, n_samples=80)
    result = searched(data, Score(p=0.99, max_parents=3), path, root_only=True)
    return data, result, *load_proof(path)


def refused(tmp_path, header, arrays, result, data, words, exactly=".*"):
    save_certificate(tmp_path / "c.npz", header, arrays)
    with pytest.raises(InputError, match=words):
        verify(result, tmp_path / "c.npz", data)
    values = None if result is None else result if isinstance(result, dict) else result.to_dict()
    with pytest.raises(NotProvedError, match=exactly):
        check_exactly(values, tmp_path / "c.npz", data)


def kept_sets(arrays, names):
    """The kept parent sets of every variable, read from the arrays of a certificate."""
    sets, members = [[] for _ in names], iter(arrays["kept_member"].tolist())
    for i, n in zip(arrays["kept_variable"].tolist(), arrays["kept_size"].tolist(), strict=True):
        sets[i].append(tuple(next(members) for _ in range(n)))
    return tuple(map(tuple, sets))


RULES = Constraints(arc_weights={("X2", "X3"): 0.5}, required=(("X1", "X2"),))


def weighted(score: Score) -> Dataset:
    return heavy_enough(random_data(1, n_features=4, n_samples=60, weights=True), score)


@pytest.mark.parametrize("options", [{}, {"root_only": True}, {"threads": 2, "merge": False}], ids=str)
@pytest.mark.parametrize("score", SCORES, ids=str)
def test_what_is_proved_holds_for_every_structure_of_kept_sets(tmp_path, score, options):
    data, path = weighted(score), tmp_path / "c.npz"
    result = searched(data, score, path, constraints=RULES, **options)
    sets = kept_sets(load_proof(path)[1], data.names)
    assert {name: len(s) for name, s in zip(data.names, sets, strict=True)} == result.screened.kept
    best = optimum(data, score, RULES, sets).objective
    for claim in (result, None):
        shown = verify(claim, path, data)
        assert (shown.kept, shown.total) == (result.screened.n_kept, result.screened.total)
        assert best - 1e-9 <= shown.bound <= result.screened.bound + 1e-9 * abs(best)
        values = None if claim is None else claim.to_dict()
        (_, high), bound = check_exactly(values, path, data)
        assert best - 1e-9 <= bound <= result.screened.bound
        assert high <= bound
    if not options:
        assert result.screened.optimal
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_the_bound_is_not_that_of_all_parent_sets(case, tmp_path):
    data, result, header, arrays = case
    z, b = result.objective, result.screened.bound
    gap = vars(Gap.between(z, b))
    whole = {**header, "screened": None, "bound": b, "gap": gap}
    refused(tmp_path, whole, arrays, None, data, "prove|damaged|removes")
    beside = {**result.to_dict(), "bound": b, "gap": gap}
    refused(tmp_path, header, arrays, beside, data, "only the kept ones", "over some rows or parent sets")
    alone = {**result.to_dict(), "screened": None, "bound": b, "gap": gap}
    refused(tmp_path, header, arrays, alone, data, "other screened parent sets", "differ")
    optimal = {**result.to_dict(), "status": {"reason": "optimal", "limit": None, "detail": ""}}
    refused(tmp_path, header, arrays, optimal, data, "does not prove", "over some")
    arcs = {**result.to_dict(), "proved": {"in": [], "out": [["X1", "X2"]]}}
    refused(tmp_path, header, arrays, arcs, data, "only the kept ones", "over some")
    of_all = solve(data, result.score, threads=1, verbose=False, root_only=True)
    refused(tmp_path, header, arrays, of_all, data, "other screened parent sets", "differ")
    refused(tmp_path, certificate_header(of_all), arrays, result, data, "other screened", "differ")


def test_other_numbers_are_refused(case, tmp_path):
    data, result, header, arrays = case
    save_certificate(tmp_path / "c.npz", header, arrays)
    assert verify(result, tmp_path / "c.npz", data)
    assert check_exactly(result.to_dict(), tmp_path / "c.npz", data)
    claim = result.screened.to_dict()
    kept = claim["kept"]
    for key, value, words in (
        ("bound", (claim["bound"] + claim["objective"]) / 2, "proves the bound"),
        ("bound", np.nextafter(claim["bound"], 0.0), "certificate claims less|proves"),
        ("objective", claim["objective"] - 1e-3, "its score is not"),
        ("optimal", True, "do not prove it"),
        ("kept", {**kept, "X1": kept["X1"] - 1}, "other screened"),
        ("kept", {name: n for name, n in kept.items() if name != "X1"}, "other variables"),
        ("total", claim["total"] + 1, "other screened"),
        ("total", sum(kept.values()), "none was left out"),
        ("k", claim["k"] + 1, "other screened"),
        ("criterion", "the best", "other screened"),
        ("ranked", claim["ranked"] - 1, "other screened"),
    ):
        own = {**claim, key: value}
        own["gap"] = vars(Gap.between(own["objective"], own["bound"]))
        trace = ((result.trace[-1][0], own["objective"], own["bound"]),)
        changed = json.loads(json.dumps({**result.to_dict(), "screened": own, "trace": trace}))
        with pytest.raises(InputError, match=words):
            verify(changed, tmp_path / "c.npz", data)
        if key in ("kept", "total", "k", "criterion", "ranked", "optimal"):
            with pytest.raises(NotProvedError):
                check_exactly(changed, tmp_path / "c.npz", data)
    with pytest.raises(InputError, match=r"its score is not|scores"):
        verify(replace(result, objective=result.objective + 1e-3), tmp_path / "c.npz", data)


def test_sets_that_were_not_kept_are_refused(case, tmp_path):
    data, result, header, arrays = case
    variable, size, member = (arrays[f"kept_{key}"] for key in ("variable", "size", "member"))
    P = len(variable)
    reverse = np.arange(P)[::-1]
    cyclic = member.copy()
    cyclic[-1] = len(data.names) - 1
    outside = member + len(data.names)
    for changes, words in (
        ({"kept_variable": variable[reverse]}, "damaged"),
        ({"kept_variable": variable[:-1]}, "damaged"),
        ({"kept_variable": variable.astype(float)}, "damaged"),
        ({"kept_variable": variable + len(data.names)}, "damaged"),
        ({"kept_size": size + 1}, "damaged"),
        ({"kept_size": -size}, "damaged"),
        ({"kept_size": size[None]}, "damaged"),
        ({"kept_member": member[:-1]}, "damaged"),
        ({"kept_member": outside}, "rule out"),
        ({"kept_member": -member - 1}, "rule out"),
        ({"kept_member": cyclic}, "rule out"),
        ({"kept_member": member.astype(float)}, "damaged"),
    ):
        refused(tmp_path, header, {**arrays, **changes}, result, data, words)
    lacking = {name: values for name, values in arrays.items() if not name.startswith("kept")}
    refused(tmp_path, header, lacking, result, data, "damaged")
    refused(tmp_path, header, lacking, None, data, "damaged")


def flat(sets):
    return {
        "kept_variable": np.array([i for i, own in enumerate(sets) for _ in own], dtype=np.int32),
        "kept_size": np.array([len(s) for own in sets for s in own], dtype=np.int32),
        "kept_member": np.array([j for own in sets for s in own for j in s], dtype=np.int32),
    }


def test_other_kept_sets_are_refused(case, tmp_path):
    """A set twice, one set less, one too many parents, or the structure's own set exchanged for another."""
    data, result, header, arrays = case
    sets = kept_sets(arrays, data.names)
    twice = (sets[0][:-1] + sets[0][-2:-1], *sets[1:])
    refused(tmp_path, header, {**arrays, **flat(twice)}, result, data, "twice")
    fewer = (sets[0][:-1], *sets[1:])
    refused(
        tmp_path, header, {**arrays, **flat(fewer)}, result, data, "not those of its certificate|does not"
    )
    larger = ((*sets[0][:-1], (1, 2, 3, 4)), *sets[1:])
    refused(tmp_path, header, {**arrays, **flat(larger)}, result, data, "rule out")
    chosen = result.structure.parents
    i = next(i for i, s in enumerate(chosen) if len(s) > 1)
    every = [(), (4,), *((j, 4) for j in range(4) if j != i)]
    every += [(j, k, 4) for j in range(4) for k in range(j + 1, 4) if i not in (j, k)]
    other = next(s for s in every if s not in sets[i])
    exchanged = tuple(
        tuple(other if s == chosen[i] else s for s in own) if v == i else own for v, own in enumerate(sets)
    )
    refused(tmp_path, header, {**arrays, **flat(exchanged)}, result, data, "does not cover|prove")


def test_class_free_sets_are_covered_only_where_one_is_kept(case, tmp_path):
    """Without {} among a feature's kept sets, the bound covers no structure that gives it class-free parents."""
    data, result, header, arrays = case
    structure = {**result.structure.to_mapping(), "X1": []}
    sets = kept_sets(arrays, data.names)
    without = (tuple(s for s in sets[0] if s), *sets[1:])
    value = rescore(data, Structure.from_mapping(data.names, structure), result.score)
    claim = {**result.screened.to_dict(), "objective": value}
    claim["kept"]["X1"] -= 1
    claim["gap"] = vars(Gap.between(value, claim["bound"]))
    forged = {**header, "structure": structure, "objective": value, "screened": claim}
    refused(tmp_path, forged, {**arrays, **flat(without)}, None, data, "does not cover", "does not obey")


def test_certificates_without_the_key_of_screening_are_read(tmp_path):
    """Files of versions before screening have no key for it in their headers."""
    data = random_data(2, n_features=3)
    result = solve(data, Score(), threads=1, verbose=False, certificate=tmp_path / "c.npz")
    header, arrays = load_proof(tmp_path / "c.npz")
    older = {key: value for key, value in header.items() if key != "screened"}
    save_certificate(tmp_path / "c.npz", older, arrays)
    assert verify(None, tmp_path / "c.npz", data).bound == pytest.approx(result.bound)
