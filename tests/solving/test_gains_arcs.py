"""What arcs are worth."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.data import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import Structure
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.gains import arc_losses


def toy() -> Dataset:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, size=(50, 4)).astype(np.int32)
    return Dataset(
        "toy",
        tuple(Variable(name, ("0", "1")) for name in ("a", "b", "c", "class")),
        codes,
        np.ones(len(codes)),
    )


@pytest.mark.parametrize("name", ["sm", "cll", "ll", "bdeu"])
def test_a_loss_is_the_difference_of_two_scores(name):
    data, score = toy(), Score(name=name)
    structure = Structure(data.names, ((3,), (0, 3), (1, 3), ()))
    losses = arc_losses(data, structure, score)
    assert set(losses) == set(structure.arcs)
    own = rescore(data, structure, score)
    without = Structure(data.names, ((3,), (3,), (1, 3), ()))
    assert losses[0, 1] == pytest.approx(own - rescore(data, without, score), abs=1e-9)
    alone = Structure(data.names, ((3,), (() if name in ("sm", "cll") else (0,)), (1, 3), ()))
    assert losses[3, 1] == pytest.approx(own - rescore(data, alone, score), abs=1e-9)


def test_other_variables_are_refused():
    with pytest.raises(InputError, match="other variables"):
        arc_losses(toy(), Structure(("x", "class"), ((1,), ())), Score())
