"""The scores of docs/adding-a-score.md, built from the code blocks of the page, against enumeration."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import oracle
import pytest
from running import optimum, random_data

import milpbn
from milpbn.errors import InputError
from milpbn.milp.formulation import formulate
from milpbn.problem.problem import build_problem
from milpbn.problem.scores import registry
from milpbn.problem.scores.registry import find_score
from milpbn.problem.scores.spec import Score

PAGE = Path(__file__).resolve().parents[1] / "docs" / "adding-a-score.md"
NAMES = ("k2", "binary-cll")


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of the page: files become modules; lines change the registry and the oracle for one test."""
    of_oracle = ("MARGIN_SCORES", "PENALISED_SCORES", "FAMILY_SCORES")
    monkeypatch.setattr(registry, "SCORES", dict(registry.SCORES))
    for name in of_oracle:
        monkeypatch.setattr(oracle, name, dict(getattr(oracle, name)))
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == page.count("```python")
    for path, code in blocks:
        if path.endswith("registry.py"):
            exec(code, vars(registry))
        elif path == "tests/oracle.py":
            exec(code, vars(oracle))
        else:
            name = path.removesuffix(".py").replace("/", ".")
            module = ModuleType(name)
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile(code, path, "exec"), vars(module))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_optima_are_those_of_enumeration(name: str, seed: int) -> None:
    data = random_data([seed, 77], n_features=3, n_classes=2 + seed % 2, n_samples=18, weights=seed == 3)
    kind = find_score(name)
    options = {"penalty": 0.2} if kind.is_margin and seed == 2 else {}
    if not kind.is_margin and seed % 2:
        options["parent_sets"] = "all"
    score = Score(name=name, max_parents=2 + seed // 2, class_parents=seed != 1, **options)
    best = optimum(data, score)
    backends = ["auto", "highs"] if kind.sums_samples else ["auto"]
    for backend in backends:
        result = milpbn.solve(data, score, backend=backend, threads=1, verbose=False)
        assert result.reason == "optimal"
        own = "native" if kind.sums_samples else "branch-and-cut"
        assert result.backend.name == (own if backend == "auto" else "highs")
        assert result.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-6)
        assert result.structure.parents in best.structures
    problem = build_problem(data, score)
    eta = problem.indicator(problem.choice(problem.candidates.structure(problem.choice(result.structure))))
    value, error = problem.rescored(result.structure)
    assert abs(problem.value(eta) - value) <= error + problem.score_error + 1e-12 * abs(value)


def test_other_modules_follow_the_declarations() -> None:
    data = random_data(5, n_classes=3)
    assert build_problem(data, Score(name="k2")).margins is None
    problem = build_problem(data, Score(name="binary-cll"))
    assert problem.margins.n_rows == problem.margins.n_samples
    assert formulate(problem).tangents
    with pytest.raises(
        InputError,
        match="A certificate comes with the scores sm, sbm, cll, ll, mdl, aic, bdeu, not with binary-cll",
    ):
        milpbn.solve(data, Score(name="binary-cll"), certificate="proof.npz", verbose=False)
    with pytest.raises(InputError, match="not piecewise linear"):
        milpbn.export_model(data, Score(name="binary-cll"), path="m.lp")
    with pytest.raises(
        InputError, match="hybrid goes with the margin scores sm, sbm, hard-margin, cll, binary-cll"
    ):
        Score(name="k2", hybrid=1.0)


def test_with_two_classes_the_binary_likelihood_is_the_likelihood() -> None:
    data = random_data(8, n_classes=2, weights=True)
    structure = milpbn.Structure.naive_bayes(data.names)
    binary, plain = (milpbn.rescore(data, structure, Score(name=name)) for name in ("binary-cll", "cll"))
    assert binary == pytest.approx(plain, abs=1e-9)


def test_k2_by_hand() -> None:
    """With ten tosses and three heads, the marginal likelihood is 3! 7! / 11!."""
    codes = np.zeros((10, 2), dtype=np.int32)
    codes[:3, 0] = 1
    codes[:, 1] = np.arange(10) % 2
    two = ("0", "1")
    variables = (milpbn.Variable("X", two), milpbn.Variable("C", two))
    data = milpbn.Dataset("tosses", variables, codes, np.ones(10))
    value, size = Score(name="k2").kind.family(data, 0, ())
    assert value == pytest.approx(-np.log(1320))
    assert size > abs(value)
