r"""Networks that read a raw column by two variables: what a column, and columns together, say of the class.

The families of one column, such as coarse and fine intervals, are added up: a curve over the fine ones. The table of a
family with parents in other columns, :math:`T_c(a, b, ...) = \log P(a | b, ..., c)`, is a sum of effects,

.. math:: T_c(a, b) = \bar T_c + A_c(a) + B_c(b) + M_c(a, b)

for one parent, where each effect has the mean 0 over the states of each of its variables, and is the mean of T over the
other ones less the smaller effects. A and B are added to the curves of their columns, and M is what only both columns
together say. All sums stay as they are. Networks with wide families are read so, too: their many tables of a few
columns make normalisers that cancel in the sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable, by_column
from milpbn.data.variables import coarser_codes
from milpbn.network.cpt import Cpt, padded_table
from milpbn.network.explanation.terms import Terms

#: The effects of a family in nats, by their variables in ascending order; shape (states of each..., C).
Effects: TypeAlias = Mapping[tuple[int, ...], NDArray[np.float64]]
#: Features from which on a family is wide; differences between classes in nats up to which an effect is nothing.
WIDE, NOTHING = 4, 1e-9


def shared_columns(variables: Sequence[Variable]) -> list[list[int]]:
    """Return the positions of the variables of each column that several features code."""
    return [places for places in by_column(variables[:-1]).values() if len(places) > 1]


def by_effects(variables: Sequence[Variable], cpts: Sequence[Cpt]) -> bool:
    """Return whether a network is explained by effects: a column has two variables, or a family is wide."""
    last = len(variables) - 1
    return bool(shared_columns(variables)) or any(
        len({*c.parents, c.variable} - {last}) >= WIDE for c in cpts
    )


def effects_of(variables: Sequence[Variable], cpts: Sequence[Cpt]) -> dict[int, Effects]:
    """Return the effects of the families that are taken apart, by their children; none without `by_effects`.

    They have the class and parents in other columns, and no probability of 0. A child's own effect contains the mean.
    """
    last = len(variables) - 1
    found: dict[int, Effects] = {}
    for cpt in cpts[:last] if by_effects(variables, cpts) else ():
        features = sorted({*cpt.parents, cpt.variable} - {last})
        columns = {variables[i].raw_column for i in features}
        if last not in cpt.parents or not 1 < len(features) == len(columns) or not cpt.table.all():
            continue
        axes = [*cpt.parents, cpt.variable]
        table = np.log(cpt.table).transpose([axes.index(i) for i in (*features, last)])
        parts: dict[tuple[int, ...], NDArray[np.float64]] = {(): table}
        for i in features:  # the axis behind those of the effect's variables so far
            means = {own: part.mean(axis=len(own)) for own, part in parts.items()}
            rest = {(*own, i): part - np.expand_dims(means[own], len(own)) for own, part in parts.items()}
            parts = means | rest
        parts[cpt.variable,] += parts.pop(())
        found[cpt.variable] = parts
    return found


def taken_apart(part: Terms, families: Mapping[int, Effects], codes: NDArray[np.int32]) -> Terms:
    """Return terms with the same sums, in which effects of several variables are terms of their own.

    `codes` are those of all samples. The new terms are behind the others and before the base rate. They are 0 in rows
    without one of the states; there, the term of a family stays whole.
    """
    if not families:
        return part
    logs, rows = part.log_probabilities.copy(), codes[part.rows]
    place = {i: g for g, group in enumerate(part.groups) for i in group}
    together: dict[tuple[int, ...], NDArray[np.float64]] = {}
    apart = []
    for child, effects in families.items():
        features = max(effects, key=len)
        known = (rows[:, features] >= 0).all(axis=1)
        if len({place[i] for i in features}) < len(features) or not known.any():
            continue
        apart.append(child)
        for own, effect in effects.items():
            if own == (child,):
                continue
            values = effect[tuple(rows[known][:, own].T)]
            logs[known, place[child]] -= values
            if len(own) == 1:
                logs[known, place[own[0]]] += values
            else:
                together.setdefault(own, np.zeros((len(rows), logs.shape[2])))[known] += values
    if not apart:
        return part
    for own in [own for own, values in together.items() if np.ptp(values, axis=1).max() < NOTHING]:
        logs[:, place[own[0]]] += together.pop(own)
    whole = np.concatenate(
        [logs[:, :-1], *(each[:, None] for each in together.values()), logs[:, -1:]], axis=1
    )
    groups = (*part.groups[:-1], *together, part.groups[-1])
    return replace(part, groups=groups, log_probabilities=whole, apart=tuple(apart), together=tuple(together))


def curve(
    variables: Sequence[Variable], cpts: Sequence[Cpt], families: Mapping[int, Effects], places: Sequence[int]
) -> tuple[int, NDArray[np.float64]]:
    """Return a column's finest variable and, for each of its states, what the column alone says, shape (states, C).

    Families with parents in other columns that are not taken apart are left out.
    """
    last = len(variables) - 1
    finest = max(places, key=lambda i: variables[i].n_states)
    codes = {i: coarser_codes(variables[finest], variables[i]) for i in places}
    total = np.zeros((variables[finest].n_states, variables[last].n_states))
    for i in places:
        if set(cpts[i].parents) <= {*places, last}:
            features, table = padded_table(cpts[i], last)
            total += table[tuple(codes[j] for j in features)]
        for effects in families.values():
            if (i,) in effects:
                total += effects[i,][codes[i]]
    return finest, total


def interactions(families: Mapping[int, Effects]) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Return the effects of several variables that are not 0, added up over the families, by their variables."""
    total: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for effects in families.values():
        for own, effect in effects.items():
            if len(own) > 1:
                total[own] = total[own] + effect if own in total else effect
    return {own: effect for own, effect in total.items() if np.ptp(effect, axis=-1).max() >= NOTHING}
