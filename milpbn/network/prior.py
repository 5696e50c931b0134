r"""The Dirichlet prior of the parameters: the strength of smoothing, and the distribution that it shrinks towards.

With the smoothing constant a, a variable X_i with sp states has the parameters

.. math:: \theta^i_{j|h} = \frac{n^i_{j|h} + a \, sp \, \theta^0_{j|h'}}{n^i_h + a \, sp},

the posterior mean under a Dirichlet prior of total pseudo-count a sp and mean theta^0. Whatever the mean, `smoothing`
is the same number of pseudo-counts. The means are

- ``uniform``: 1 / sp, which is Laplace smoothing;
- ``marginal``: the Laplace-smoothed distribution of X_i without parents. Friedman, Geiger & Goldszmidt (1997) smooth
  the parameters of TAN in this way, with a total pseudo-count that is the same for all variables, and a marginal
  distribution that is not smoothed;
- ``class``: the Laplace-smoothed distribution of X_i given the class alone, or without parents if the class is not a
  parent: a back-off to the table without feature parents.

Parents with one state are not counted. If the other parents are just those of the prior's table, the two tables are the
same, and the mean is uniform. So arcs from constant features change no parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError

UNIFORM, MARGINAL, CLASS = "uniform", "marginal", "class"
#: Names of the prior means.
TOWARDS = (UNIFORM, MARGINAL, CLASS)


class Prior(NamedTuple):
    """The prior of all parameters: `smoothing` pseudo-counts a per state, and its mean, one of `TOWARDS`."""

    smoothing: float = 1.0
    towards: str = UNIFORM

    @property
    def has_table(self) -> bool:
        """Whether the mean is a table that is itself estimated from the data."""
        return self.towards != UNIFORM and self.smoothing > 0


class PseudoCounts(NamedTuple):
    """What is added to counts: a sp theta^0 to that of a state, and a sp (1 - theta^0) to that of all others."""

    part: float | NDArray[np.float64]
    rest: float | NDArray[np.float64]


def check_towards(towards: object) -> None:
    """Raise `InputError` unless a name is one of `TOWARDS`; the message lists them."""
    if towards not in TOWARDS:
        raise InputError(
            f"smoothing_towards must be {', '.join(TOWARDS[:-1])} or {TOWARDS[-1]}, got {towards!r}."
        )


def prior_parents(
    prior: Prior, parents: Sequence[int], n_states: Sequence[int] | NDArray[np.integer]
) -> tuple[int, ...] | None:
    """Return the parents in the table that is the mean of a family's prior; None for the uniform mean.

    `n_states` has the numbers of states of all variables, the class last.
    """
    last = len(n_states) - 1
    fewer = (last,) if prior.towards == CLASS and last in parents else ()
    if not prior.has_table or {j for j in parents if n_states[j] > 1}.issubset(fewer):
        return None
    return fewer


def uniform_counts(a: float, states: int) -> PseudoCounts:
    """Return the pseudo-counts of Laplace smoothing: a for a state, and a (sp - 1) for the others."""
    return PseudoCounts(a, a * (states - 1))


def shrunk_counts(
    part: NDArray[np.float64], rest: NDArray[np.float64], a: float, states: int
) -> PseudoCounts:
    """Return the pseudo-counts whose mean is the Laplace-smoothed table of the prior; nothing is subtracted.

    `part` and `rest` are counts of a state, and of all other states of the variable, in the prior's table. The Laplace
    constant a > 0 is that of the table and of the prior's table alike; the variable has sp = `states` states.
    """
    total = part + rest + a * states
    return PseudoCounts(a * states * (part + a) / total, a * states * (rest + a * (states - 1)) / total)
