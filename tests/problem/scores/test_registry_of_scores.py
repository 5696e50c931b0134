"""The declarations of the score classes agree with the verifier, the command line and the guide."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import oracle
import pytest

from milpbn.certificate.exact import problem as exact_problem
from milpbn.errors import InputError
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.registry import (
    ALIASES,
    SCORES,
    find_score,
    generative_scores,
    list_names,
    margin_scores,
    score_names,
    sums_of_samples,
)
from milpbn.problem.scores.spec import Score

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", SCORES)
def test_a_class_has_its_registered_name_and_options_of_scores(name: str) -> None:
    kind = find_score(name)
    assert kind.name == name
    assert isinstance(kind.shape, Shape)
    assert {item.name for item in fields(kind)} <= {item.name for item in fields(Score)}
    assert kind.lighter in ("", *SCORES)
    assert isinstance(Score(name=name).kind, kind)


def test_the_declarations_of_the_scores_are_these() -> None:
    assert margin_scores() == tuple(oracle.MARGIN_SCORES)
    assert generative_scores() == oracle.GENERATIVE_SCORES
    assert sums_of_samples() == ("sm", "sbm", "cll")
    assert score_names(lambda kind: kind.shape is Shape.LINEAR) == ("ll", "mdl", "aic", "bdeu")
    assert score_names(lambda kind: kind.shape is Shape.CONCAVE) == ("cll",)
    assert score_names(lambda kind: kind.takes("gamma")) == ("sm", "sbm")
    assert score_names(lambda kind: kind.binary) == ("sbm",)


def test_certified_scores_are_those_that_both_verifiers_define() -> None:
    certified = score_names(lambda kind: kind.certified)
    assert set(certified) == {*exact_problem.REACH, *exact_problem.DECOMPOSABLE}
    assert {name for name in certified if name in sums_of_samples()} == set(exact_problem.REACH)


def test_names_need_no_numpy_and_solvers_no_numba() -> None:
    code = (
        "import sys; from milpbn.problem.scores.registry import list_names; list_names();"
        "print([m for m in ('numpy', 'scipy', 'numba') if m in sys.modules]);"
        "import milpbn.solvers.highs; print('numba' in sys.modules)"  # imported in each process of a solver
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"]
    assert list_names() == "sm, sbm, hard-margin, cll, ll, mdl or bic, aic, aicc, bdeu"


def test_the_guide_lists_every_score() -> None:
    table = re.search(r"\| `--score` .*?\n\n", (DOCS / "guide.md").read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None
    named = {
        word
        for line in table[0].strip().splitlines()[2:]
        for word in re.findall(r"`([\w-]+)`", line.split("|")[1])
    }
    assert named == {*SCORES, *ALIASES}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"no score 'k3'; choose one of sm, .*, bdeu \(or bic for mdl\)"):
        find_score("k3")


def test_options_are_those_of_the_score() -> None:
    score = Score(name="sbm", p=0.9, penalty="bic", hybrid=0.5)
    assert score.kind.cap == score.gamma
    assert score.kind == replace(score, max_parents=3).kind
    assert not score.kind.class_free_alike
    assert Score(p=0.9).kind.class_free_alike
    assert not Score(name="mdl").kind.class_free_alike
