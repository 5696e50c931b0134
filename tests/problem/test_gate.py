"""No input leads to a structure that violates the user's constraints, of any kind."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import oracle
import pytest
from running import BACKENDS, candidate_sets, optimum, predicate, random_constraints, random_data

import milpbn
from milpbn.claims.gap import Gap
from milpbn.claims.result import Result
from milpbn.cli.app import app
from milpbn.errors import InputError
from milpbn.network.formats.structure_files import write_arcs
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.scores.spec import Score

NAMES = ("X1", "X2", "X3", "C")
#: With this gap the search ends as soon as there are a start and the trivial bound.
AT_ONCE = {"gap_abs": 1e9, "verbose": False, "threads": 1}
KINDS = {
    "required": Constraints(required=(("X1", "X2"),)),
    "forbidden": Constraints(forbidden=(("X1", "X2"),)),
    "tiers": Constraints(tiers=(("X2",), ("X1",))),
    "max_children": Constraints(max_children={"X1": 0}),
    "fixed": Constraints(fixed={"X2": ("X3",)}),
    "allowed": Constraints(allowed={"X2": ("X3", "C")}),
}


def allowed_structures(score: Score, constraints: Constraints) -> set[tuple[tuple[int, ...], ...]]:
    """Return every structure that a search may return, by enumeration."""
    sets = candidate_sets(NAMES, score, constraints)
    if not all(sets):
        return set()
    obeys = predicate(NAMES, constraints)
    return {g for g in oracle.acyclic_structures(tuple(map(tuple, sets))) if obeys(g)}


def random_dag(rng: np.random.Generator, most: int = 3) -> Structure:
    order = rng.permutation(len(NAMES))
    parents: list[tuple[int, ...]] = [()] * len(NAMES)
    for k, i in enumerate(order):
        size = int(rng.integers(0, min(k, most) + 1))
        parents[i] = tuple(rng.choice(order[:k], size=size, replace=False).tolist()) if size else ()
    return Structure(NAMES, tuple(parents))


def stand_ins(start: Structure, allowed: set, class_free_alike: bool) -> set:
    """Return the allowed structures that a start may become; class-free sets may lose arcs."""
    target = len(NAMES) - 1

    def fits(i: int, own: tuple[int, ...], given: tuple[int, ...]) -> bool:
        free = class_free_alike and i != target and target not in given
        return own == given or (free and set(own) <= set(given))

    return {
        g for g in allowed if all(fits(i, *pair) for i, pair in enumerate(zip(g, start.parents, strict=True)))
    }


def value_of(data, score: Score, constraints: Constraints, parents) -> float:
    weights = {(NAMES.index(a), NAMES.index(b)): w for (a, b), w in constraints.arc_weights.items()}
    value = oracle.score_structure(
        data,
        parents,
        score.name,
        gamma=score.gamma,
        smoothing=score.smoothing,
        penalty=score.penalty,
        hybrid=score.hybrid,
    )
    return value + sum(weights.get((j, i), 0.0) for i, p in enumerate(parents) for j in p)


def random_score(rng: np.random.Generator) -> Score:
    name = str(rng.choice(["sm", "sbm", "cll", "mdl"]))
    extra = {"hybrid": 0.1} if name != "mdl" and rng.random() < 0.2 else {}
    extra |= {"penalty": 0.1} if name != "mdl" and rng.random() < 0.2 else {}
    extra |= {"parent_sets": str(rng.choice(["auto", "paper", "all"]))}
    return Score(
        name=name, max_parents=int(rng.integers(1, 4)), class_parents=bool(rng.random() < 0.6), **extra
    )


@pytest.mark.parametrize(
    "score",
    [
        Score(p=0.9),
        Score(name="mdl", parent_sets="all"),
        Score(name="cll", hybrid=0.1),
        Score(penalty=0.1, parent_sets="all"),
        Score(hybrid=0.1, parent_sets="paper"),
    ],
    ids=["sm", "mdl", "hybrid", "penalty all", "hybrid paper"],
)
@pytest.mark.parametrize("limits", list(product((1, 2, 3), (True, False))), ids=str)
def test_the_gate_is_the_definition(score: Score, limits: tuple[int, bool]) -> None:
    """The gate agrees with the definitions of the constraints for every acyclic structure."""
    for seed in range(4):
        rng = np.random.default_rng([21, seed])
        score = replace(score, max_parents=limits[0], class_parents=limits[1])
        constraints = random_constraints(rng, NAMES)
        allowed = allowed_structures(score, constraints)
        for _ in range(40):
            dag = random_dag(rng)
            assert (objection(dag, score, constraints) is None) == (dag.parents in allowed)
        for parents in allowed:
            assert objection(Structure(NAMES, parents), score, constraints) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["native", "highs"])
def test_class_free_starts_pass_the_gate_only_if_they_obey(kind: str, backend: str) -> None:
    """A start with X1 -> X2, but not class -> X2, scores like one without X1 -> X2. Once it was returned as optimal."""
    data = random_data(41, n_samples=30)
    score = Score(p=0.9, class_parents=False, max_parents=1)
    starts = [Structure(NAMES, ((3,), s, (3,), ())) for s in ((0,), (0, 2), (2,), ())]
    allowed = allowed_structures(score, KINDS[kind])
    for start in starts:
        own = stand_ins(start, allowed, class_free_alike=True)
        options = {"constraints": KINDS[kind], "start": start, "backend": backend, **AT_ONCE}
        if not own:
            with pytest.raises(InputError, match="start"):
                milpbn.solve(data, score, **options)
            continue
        result = milpbn.solve(data, score, **options)
        assert result.structure.parents in allowed
        assert result.objective >= value_of(data, score, KINDS[kind], start.parents) - 1e-9


@pytest.mark.parametrize("seed", range(24))
def test_random_starts_under_random_constraints(seed: int) -> None:
    """A start is refused, or becomes an allowed structure with the same score; the optimum stays the same."""
    rng = np.random.default_rng([22, seed])
    data = random_data([23, seed])
    score, constraints = random_score(rng), random_constraints(rng, NAMES, strength=0.25)
    allowed = allowed_structures(score, constraints)
    if not allowed:
        with pytest.raises(InputError, match=r"exclude each other|obeys this constraint"):
            milpbn.solve(data, score, constraints=constraints, **AT_ONCE)
        return
    best = optimum(data, score, constraints).objective
    suffices = score.is_margin and not score.hybrid and not constraints.arc_weights
    for k in range(6):
        start = random_dag(rng)
        own = stand_ins(start, allowed, suffices)
        options = {"constraints": constraints, "start": start, "verbose": False, "threads": 1}
        if not own:
            with pytest.raises(InputError, match="start"):
                milpbn.solve(data, score, **options)
            continue
        at_once = milpbn.solve(data, score, **{**options, **AT_ONCE})
        assert at_once.structure.parents in allowed
        assert at_once.objective >= value_of(data, score, constraints, start.parents) - 1e-9
        if k < 2:
            result = milpbn.solve(data, score, **options)
            assert result.optimal
            assert result.structure.parents in allowed
            assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("backend", ["native", *BACKENDS])
def test_every_backend_returns_a_structure_that_obeys(backend: str) -> None:
    """The optimum under each kind of constraint, from a start that breaks them in class-free parent sets."""
    data = random_data(42, n_samples=30)
    score = Score(p=0.9, max_parents=2)
    start = Structure(NAMES, ((3,), (0,), (3,), ()))
    # These start slowly, and all have the rows that HiGHS and CBC get.
    every = 2 if backend in ("cpsat", "pulp:HiGHS", "scip") else 1
    for kind, constraints in list(KINDS.items())[::every]:
        allowed = allowed_structures(score, constraints)
        own = stand_ins(start, allowed, class_free_alike=True)
        result = milpbn.solve(
            data,
            score,
            constraints=constraints,
            start=start if own else None,
            backend=backend,
            acyclicity="cluster" if kind == "tiers" and backend != "native" else "order",
            threads=1,
            verbose=False,
        )
        best = optimum(data, score, constraints)
        assert result.structure.parents in allowed, kind
        assert result.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-6), kind


def command(*arguments: object) -> tuple[int, str]:
    from click.testing import CliRunner

    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    return done.exit_code, done.output


@pytest.fixture
def table(tmp_path: Path) -> Path:
    data = random_data(43, n_classes=2, max_states=2, n_samples=40)
    rows = [",".join(map(str, row)) for row in data.codes.tolist()]
    path = tmp_path / "table.csv"
    path.write_text("\n".join([",".join(NAMES), *rows]) + "\n")
    return path


@pytest.mark.parametrize("kind", ["arcs", "classifier", "learned"])
def test_start_files_pass_the_gate(table: Path, tmp_path: Path, kind: str) -> None:
    """Starts on the command line: an arc list, a classifier and the structure of another learner."""
    start, output = tmp_path / "start.txt", tmp_path / "result.json"
    if kind == "arcs":
        write_arcs(Structure(NAMES, ((3,), (0,), (3,), ())), start)
    else:
        own = Structure(NAMES, ((), (0,), (3,), ()))
        data = milpbn.read_table(table).dataset()
        start = tmp_path / "start.json"
        if kind == "classifier":
            from milpbn.network import save_classifier

            save_classifier(milpbn.Classifier.fit(data, own, 1.0), start)
        else:
            start.write_text(json.dumps({"structure": own.to_mapping()}))
    options = ("--forbid", "X1,X2", "--no-class-parents", "--max-parents", 2, "--p", 0.9)
    proof = tmp_path / "proof.npz"
    code, said = command(
        *("solve", table, "-q", "--threads", 1, "--start", start, "--output", output, *options),
        *("--certificate", proof),
    )
    assert code == 0, said
    result = Result.load(output)
    score = Score(p=0.9, class_parents=False)
    assert result.optimal
    assert result.structure.parents in allowed_structures(score, KINDS["forbidden"])
    assert command("verify", output, table, "--certificate", proof)[0] == 0
    # The same result with this arc, which does not change the score, is refused by the verifier.
    document = json.loads(output.read_text())
    document["structure"] = {"X1": ["C"], "X2": ["X1"], "X3": ["C"], "C": []}
    forged = Structure.from_mapping(NAMES, document["structure"])
    document["objective"] = milpbn.rescore(milpbn.read_table(table).dataset(), forged, score)
    z, b = document["objective"], max(document["objective"], document["bound"])
    seconds = document["trace"][-1][0]
    document |= {"bound": b, "gap": vars(Gap.between(z, b)), "trace": [[seconds, z, b]]}
    document["status"]["reason"] = "feasible"
    document["proved"] = None
    output.write_text(json.dumps(document))
    code, said = command("verify", output, table, "--certificate", proof)
    assert code == 2
    assert "forbidden arc X1 -> X2" in said


def test_imported_solutions_pass_the_gate(table: Path, tmp_path: Path) -> None:
    """A sidecar that maps a column to forbidden parents does not get past the gate."""
    constraints = KINDS["forbidden"]
    export = milpbn.export_model(
        str(table), Score(p=0.9, class_parents=False), path=tmp_path / "m.lp", constraints=constraints
    )
    sidecar = json.loads(export.sidecar.read_text())
    values = dict(
        line.split()[:2]
        for line in export.starts["scip"].read_text().splitlines()
        if line.startswith(("p_", "tau", "o_", "id_"))
    )
    solution = tmp_path / "m.gurobi.sol"
    solution.write_text("# Solution\n" + "".join(f"{name} {value}\n" for name, value in values.items()))
    result = milpbn.import_solution(solution)
    assert objection(result.structure, result.score, constraints) is None
    for i, said in enumerate((["X1", ["C"]], ["X2", ["X1"]])):
        chosen = next(n for n, value in values.items() if n.startswith(f"p_{i}_") and float(value) == 1)
        sidecar["columns"][chosen] = said
    export.sidecar.write_text(json.dumps(sidecar))
    with pytest.raises(InputError, match="forbidden arc X1 -> X2"):
        milpbn.import_solution(solution)


def test_score_states_no_gap_for_what_the_run_forbade(table: Path, tmp_path: Path) -> None:
    output, own = tmp_path / "result.json", tmp_path / "own.txt"
    for constraint in (("--forbid", "X1,X2"), ("--max-children", "X1=0"), ("--tiers", "X2;X1")):
        code, said = command(
            "solve", table, "-q", "--threads", 1, "--p", 0.9, "--output", output, *constraint
        )
        assert code == 0, said
        write_arcs(Structure(NAMES, ((3,), (0,), (3,), ())), own)
        code, said = command("score", own, table, "--bound", output)
        assert code == 0, said
        assert "X1" in said
        assert "nats" not in said.split("gap", 1)[1]
