r"""Networks that read a raw column by two variables: what a column, and a pair of columns, says of the class.

The families of one column, such as coarse and fine intervals, are added up: a curve over the fine ones. A family with
one parent from another column has a table of pairs, :math:`T_c(a, b) = \log P(a | b, c)`. It is taken apart into

.. math:: T_c(a, b) = M_c(a, b) + \bar T_c(a, \cdot) + (\bar T_c(\cdot, b) - \bar T_c(\cdot, \cdot)),

where bars are means over all states. The second term belongs to the curve of a's column, the third one to that of b's
column, and M, whose means are 0, is what only both columns together say. All sums stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable, by_column
from milpbn.data.variables import coarser_codes
from milpbn.network.cpt import Cpt, padded_table
from milpbn.network.explanation.terms import Terms


@dataclass(frozen=True, eq=False)
class Pair:
    """The parts of the table of pairs of a variable and its parent, in nats.

    `together` has the shape (states of the parent, states of the child, C), the other arrays (states, C).
    """

    child: int
    parent: int
    of_child: NDArray[np.float64]
    of_parent: NDArray[np.float64]
    together: NDArray[np.float64]


def shared_columns(variables: Sequence[Variable]) -> list[list[int]]:
    """Return the positions of the variables of each column that several features code."""
    return [places for places in by_column(variables[:-1]).values() if len(places) > 1]


def pairs_of(variables: Sequence[Variable], cpts: Sequence[Cpt]) -> tuple[Pair, ...]:
    """Return the tables of pairs with the class, if columns are shared; one with a probability of 0 is left whole."""
    last = len(variables) - 1
    found: list[Pair] = []
    if not shared_columns(variables):
        return ()
    for cpt in cpts[:last]:
        own = variables[cpt.variable].raw_column
        if len(cpt.parents) != 2 or cpt.parents[1] != last or variables[cpt.parents[0]].raw_column == own:
            continue
        with np.errstate(divide="ignore"):
            table = np.log(cpt.table).swapaxes(1, 2)
        if np.isfinite(table).all():
            of_child, of_parent = table.mean(axis=0), table.mean(axis=1)
            of_parent = of_parent - of_parent.mean(axis=0)
            together = table - of_child - of_parent[:, np.newaxis]
            found.append(Pair(cpt.variable, cpt.parents[0], of_child, of_parent, together))
    return tuple(found)


def known_pairs(pairs: Sequence[Pair], codes: NDArray[np.int32]) -> dict[int, int]:
    """Return child and parent of the pairs of which a row, shape (V,), has both states."""
    return {pair.child: pair.parent for pair in pairs if codes[pair.child] >= 0 and codes[pair.parent] >= 0}


def taken_apart(part: Terms, pairs: Sequence[Pair], codes: NDArray[np.int32]) -> Terms:
    """Return terms with the same sums of which those of `pairs` are taken apart, for samples with these codes.

    What both columns say together is a term of its own, behind the others and before the base rate; its group is
    (child, parent). It is 0 in rows without one of the states.
    """
    if not pairs:
        return part
    logs, rows = part.log_probabilities.copy(), codes[part.rows]
    place = {i: g for g, group in enumerate(part.groups) for i in group}
    groups, added = [], []
    for pair in pairs:
        own, other = place[pair.child], place[pair.parent]
        both = (rows[:, pair.child] >= 0) & (rows[:, pair.parent] >= 0)
        if own == other or not both.any():
            continue
        a, b = rows[both, pair.child], rows[both, pair.parent]
        together = np.zeros((len(rows), logs.shape[2]))
        together[both] = pair.together[b, a]
        logs[both, own] -= pair.of_parent[b] + pair.together[b, a]
        logs[both, other] += pair.of_parent[b]
        groups.append((pair.child, pair.parent))
        added.append(together)
    if not groups:
        return part
    whole = np.concatenate([logs[:, :-1], np.stack(added, axis=1), logs[:, -1:]], axis=1)
    return Terms(part.rows, (*part.groups[:-1], *groups, part.groups[-1]), whole)


def curve(
    variables: Sequence[Variable], cpts: Sequence[Cpt], pairs: Sequence[Pair], places: Sequence[int]
) -> tuple[int, NDArray[np.float64]]:
    """Return a column's finest variable and, for each of its states, what the column alone says, shape (states, C).

    Families with parents in other columns that are no pairs are left out.
    """
    last = len(variables) - 1
    finest = max(places, key=lambda i: variables[i].n_states)
    codes = {i: coarser_codes(variables[finest], variables[i]) for i in places}
    total = np.zeros((variables[finest].n_states, variables[last].n_states))
    for i in places:
        if set(cpts[i].parents) <= {*places, last}:
            features, table = padded_table(cpts[i], last)
            total += table[tuple(codes[j] for j in features)]
    for pair in pairs:
        if pair.child in places:
            total += pair.of_child[codes[pair.child]]
        if pair.parent in places:
            total += pair.of_parent[codes[pair.parent]]
    return finest, total
