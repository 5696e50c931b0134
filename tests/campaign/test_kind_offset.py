"""Kind: a number that all structures share must not decide what counts as optimal.

Local scores far from 0, a constant in one variable only, constants that cancel, parent sets that no good structure has,
and tables with rows of very different weights and with large arc weights. The best structure is found by dynamic
programming over sets of variables, or by scoring every structure, in exact arithmetic.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import milpbn
from campaign.case import Case
from campaign.exact import truth
from campaign.share import Share
from milpbn.certificate.verify.check import verify
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.solvers.registry import find_solver
from milpbn.solving.local_scores import solve_local_scores

BACKENDS = ("highs", "cbc", "scip", "cpsat", "pulp:highs", "pulp:cbc")
OFFSETS = (0.0, 1e3, 1e5, 1e6, 1e7, 1e9)
#: Local scores by variable and parent set.
Local = list[dict[tuple[int, ...], float]]


def installed() -> list[str]:
    found = []
    for name in BACKENDS:
        solver = find_solver(name)
        assert solver is not None
        try:
            solver.version()
        except InputError:
            continue
        found.append(name)
    return found


def draw(rng: random.Random) -> tuple[str, Local]:
    """Return a kind of local scores and such scores of three to five variables."""
    V, step, offset = rng.randint(3, 5), rng.choice([1.0, 0.1, 1e-3]), rng.choice(OFFSETS)
    offset *= rng.choice([1, -1])
    local: Local = []
    for i in range(V):
        sets = [s for n in (1, 2) for s in itertools.combinations([j for j in range(V) if j != i], n)]
        chosen = [(), *rng.sample(sets, min(len(sets), rng.randint(1, 5)))]
        local.append({s: step * rng.randint(-5, 5) for s in chosen})
    kind = rng.choice(["all", "one", "cancelling", "empty sets", "one set"])
    shifts = {
        "all": [offset] * V,
        "one": [offset] + [0.0] * (V - 1),
        "cancelling": [offset, -offset] + [0.0] * V,
    }
    for i, own in enumerate(local):
        for s in own:
            own[s] += shifts[kind][i] if kind in shifts else 0.0
            own[s] -= abs(offset) if kind == "empty sets" and not s else 0.0
    if kind == "one set":
        local[0][rng.choice(list(local[0]))] -= abs(offset)
    return f"{kind} {offset:g} in steps of {step:g}", local


def best_sum(local: Local) -> Fraction:
    """Return the largest sum of an acyclic choice: the last variable of an order has its parents among the others."""
    best = {0: Fraction(0)}
    for placed in range(1, 1 << len(local)):
        best[placed] = max(
            best[placed ^ (1 << i)]
            + max(Fraction(z) for s, z in own.items() if all(placed >> j & 1 for j in s))
            for i, own in enumerate(local)
            if placed >> i & 1
        )
    return best[max(best)]


def write_jkl(path: Path, local: Local) -> None:
    lines = [str(len(local))]
    for i, own in enumerate(local):
        lines.append(f"V{i} {len(own)}")
        lines += [" ".join([repr(z), str(len(s)), *(f"V{j}" for j in s)]) for s, z in own.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def wrong_claims(best: Fraction, result: dict[str, object], size: float) -> Iterator[str]:
    """Yield what a result says wrongly, where sums of this size have a rounding error of some 1e-14 of it."""
    z, b, rounding = result["objective"], result["bound"], 1e-14 * size
    assert isinstance(z, float)
    assert isinstance(b, float)
    lacking, above = float(best - Fraction(z)), float(best - Fraction(b))
    if abs(min(lacking, 0.0)) > rounding:
        yield f"the objective {z!r} is {-lacking} above the best score"
    if above > 1e-6 + rounding:
        yield f"the bound {b!r} is {above} below the best score"
    if result["status"]["reason"] != "optimal":  # type: ignore[index]
        yield f"not proved: {result['status']}, gap {b - z}, tolerance {result['tolerance']}"
    elif lacking > max(1e-6, 10 * rounding):
        yield f"called optimal and lacks {lacking} nats"


@pytest.mark.parametrize("backend", BACKENDS)
def test_local_scores_with_shared_numbers(backend: str, share: Share, tmp_path: Path) -> None:
    if backend not in installed():
        pytest.skip(f"{backend} is not installed")
    path, output = tmp_path / "s.jkl", tmp_path / "r.json"
    for seed in share.seeds():
        rng = random.Random(seed)
        kind, local = draw(rng)
        write_jkl(path, local)
        acyclicity = rng.choice(["cluster", "order"])
        how = {} if backend == "branch-and-cut" else {"acyclicity": acyclicity, "root_bound": False}
        solve_local_scores(path, backend=backend, output=output, verbose=False, **how)
        share.tally.tried["tables"] += 1
        share.tally.outcomes[f"local scores, {backend}"] += 1
        size = sum(max(map(abs, own.values())) for own in local)
        for text in wrong_claims(best_sum(local), json.loads(output.read_text()), size):
            share.note(
                "shared number in local scores", f"seed {seed}", f"{kind}, {acyclicity}: {text}\n{local}"
            )
    share.finish()


def draw_table(rng: random.Random) -> Case:
    """Return a small table whose weights span many orders of magnitude, with or without large arc weights."""
    names = ["X", "Y", "C"]
    labels = [[f"s{k}" for k in range(rng.randint(2, 3))] for _ in names]
    rows = [[rng.randrange(len(states)) for states in labels] for _ in range(rng.randint(6, 14))]
    rows = [list(row) for row in dict.fromkeys(map(tuple, rows))]
    heavy = rng.choice([1e3, 1e6, 1e9])
    weights = [heavy if rng.random() < 0.4 else float(rng.randint(1, 3)) for _ in rows]
    if rng.random() < 0.5:  # rows that no structure can tell apart
        twins = [[*rows[0][:-1], c] for c in range(len(labels[-1]))]
        rows, weights = [*rows, *twins], [*weights, *[heavy] * len(twins)]
    score = rng.choice(
        [
            {"name": "sm", "gamma": 1.5},
            {"name": "cll"},
            {"name": "sbm", "gamma": 0.7},
            {"name": "mdl"},
            {"name": "bdeu"},
        ]
    )
    constraints = {}
    if rng.random() < 0.4:
        constraints = {
            "arc_weights": [["C", "X", rng.choice([-1e6, 1e6, 1e3, 0.01])]],
            "required": [["C", "X"]],
        }
    return Case(
        names=names,
        labels=labels,
        rows=rows,
        weights=weights,
        declared=True,
        score={**score, "max_parents": 2},
        constraints=constraints,
    )


def test_tables_with_shared_numbers(share: Share, tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    for seed in share.seeds():
        rng = random.Random(seed)
        case = draw_table(rng)
        margins = case.score["name"] in ("sm", "cll", "sbm")
        backend = rng.choice(["native", "native", "highs"]) if margins else "highs"
        known = truth(case)
        variables = tuple(
            Variable(n, tuple(states)) for n, states in zip(case.names, case.labels, strict=True)
        )
        data = Dataset("table", variables, np.array(case.rows, dtype=np.int32), np.array(case.weights))
        certificate = {"certificate": tmp_path / "c.npz"} if backend == "native" else {}
        result = milpbn.solve(
            data,
            milpbn.Score(**case.score),
            constraints=milpbn.Constraints.from_dict(case.constraints),
            backend=backend,
            threads=1,
            output=output,
            verbose=False,
            **certificate,
        )
        share.tally.tried["tables"] += 1
        share.tally.outcomes[f"{case.score['name']}, {backend}, {result.reason}"] += 1
        size = sum(case.weights) + sum(abs(w) for *_, w in case.constraints.get("arc_weights", []))
        best = known.optimum
        assert best is not None
        assert result.objective is not None
        assert result.bound is not None
        worse, above = float(best - Fraction(result.objective)), float(best - Fraction(result.bound))
        origin, text = f"seed {seed}", f"{case.score}, {backend}, {result!r}, tolerance {result.tolerance}"
        # A MILP solver satisfies the row of each sample up to 1e-9 or so.
        allowed = 1e-6 + (1e-9 if backend != "native" and margins else 1e-10) * size
        if result.optimal and worse > allowed:
            share.note("called optimal and is not", origin, f"{worse} nats below the optimum: {text}")
        if above > (0.0 if result.bound_source == "certified" else allowed):
            share.note("bound below the optimum", origin, f"{above}: {text}")
        if backend == "native":
            if not result.optimal:
                share.note("native engine without a proof", origin, text)
            verify(result, certificate["certificate"], data)
    share.finish()
