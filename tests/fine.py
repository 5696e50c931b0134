"""Random classifiers with two variables per continuous column, coarse and fine intervals, and raw rows for them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from milpbn.data.dataset import MISSING, UNKNOWN, Variable
from milpbn.data.variables import interval_labels
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt
from milpbn.network.parameters.normalised import completed, normalised
from milpbn.network.structure import Structure

#: Log-weight of a fine interval outside the coarse one.
OUTSIDE = -40.0


def fine_classifier(
    seed: int,
    n_columns: int = 4,
    n_classes: int = 3,
    coarse: int = 3,
    fine: int = 9,
    missing: bool = False,
    most_parents: int = 1,
) -> Classifier:
    """Return a classifier of `n_columns` features: the second is nominal, the others have two variables each.

    The coarse intervals and the nominal feature are a random forest given the class, or have up to `most_parents`
    parents each. With `missing`, missing values of the first column have a state.
    """
    rng = np.random.default_rng(seed)
    features, parents = [], []
    for k in range(n_columns):
        above = (int(rng.integers(k)),) if k and rng.random() < 0.8 else ()
        if most_parents > 1:
            above = tuple(sorted(rng.permutation(k)[:most_parents].tolist()))
        parents.append(above)
        if k == 1:
            features.append(Variable("colour", ("red", "green", "blue")))
            continue
        own_state = missing and k == 0
        cuts = np.sort(rng.normal(size=fine - 1)).round(3) + np.arange(fine - 1) * 1e-3
        kept = np.sort(rng.permutation(fine - 1)[: coarse - 1])
        for name, chosen, column in (
            (f"x{k}", cuts[kept], None),
            (f"x{k} (fine)", cuts, f"x{k}"),
        ):
            states = interval_labels(tuple(chosen.tolist())) + (("?",) if own_state else ())
            features.append(
                Variable(name, states, tuple(chosen.tolist()), missing_state=own_state, column=column)
            )
    coarse_places = [i for i, v in enumerate(features) if v.column is None]
    target = len(features)
    given, below = [], 0
    for i, variable in enumerate(features):
        if variable.column is None:
            given.append((*(coarse_places[j] for j in parents[below]), target))
            below += 1
        else:
            given.append((i - 1, target))
    variables = (*features, Variable("kind", tuple(f"k{c}" for c in range(n_classes))))
    structure = Structure(tuple(v.name for v in variables), (*map(tuple, given), ()))
    structure, _, reason = completed(structure, [v.n_states for v in variables])
    assert reason is None
    weights = []
    for i, above in enumerate(structure.parents):
        table = rng.normal(size=[variables[j].n_states for j in (*above, i)])
        if variables[i].column is not None:
            table = np.where(contained(variables[i - 1], variables[i])[:, np.newaxis], table, OUTSIDE)
        weights.append(Cpt(i, above, table))
    cpts = normalised(structure, weights)
    assert cpts is not None
    return Classifier(variables, structure, tuple(cpts))


def refined(classifier: Classifier, name: str, cuts: tuple[float, ...]) -> Classifier:
    """Return a classifier with the same posteriors that has a fine variable of a column, with these cuts besides."""
    place, target = [v.name for v in classifier.variables].index(name), len(classifier.variables) - 1
    coarse = classifier.variables[place]
    cuts = tuple(sorted({*coarse.cuts, *cuts}))
    states = interval_labels(cuts) + coarse.states[len(coarse.cuts) + 1 :]
    fine = Variable(f"{name} (fine)", states, cuts, missing_state=coarse.missing_state, column=name)
    variables = (*classifier.variables[:-1], fine, classifier.variables[-1])
    moved = [
        cpt.parents if target not in cpt.parents else (*cpt.parents[:-1], target + 1)
        for cpt in classifier.cpts
    ]
    parents = (*moved[:-1], (place, target + 1), moved[-1])
    table = np.where(contained(coarse, fine), 1.0, np.exp(OUTSIDE))[:, np.newaxis].repeat(
        variables[-1].n_states, 1
    )
    tables = [
        *(cpt.table for cpt in classifier.cpts[:-1]),
        table / table.sum(-1, keepdims=True),
        classifier.cpts[-1].table,
    ]
    cpts = tuple(Cpt(i, above, each) for i, (above, each) in enumerate(zip(parents, tables, strict=True)))
    return Classifier(variables, Structure(tuple(v.name for v in variables), parents), cpts)


def contained(coarse: Variable, fine: Variable) -> np.ndarray:
    """Return which fine intervals lie in which coarse ones, shape (coarse states, fine states)."""
    ends = np.array([*fine.cuts, np.inf])
    inside = np.searchsorted(np.array(coarse.cuts), ends)
    if fine.missing_state:
        inside = np.append(inside, coarse.n_states - 1)
    return inside == np.arange(coarse.n_states)[:, np.newaxis]


def raw_rows(classifier: Classifier, n: int, seed: int, missing: float = 0.0) -> pd.DataFrame:
    """Return rows of raw columns, also on the cuts and far outside them, with a class; some values are missing."""
    rng = np.random.default_rng(seed)
    frame = {}
    for variable in classifier.variables[:-1]:
        if variable.column is not None:
            continue
        if variable.cuts is None:
            values = rng.choice(np.array(variable.states, dtype=object), n)
        else:
            values = rng.normal(scale=2, size=n)
            on_cut = rng.random(n) < 0.2
            values[on_cut] = rng.choice(variable.cuts, on_cut.sum())
            values[0] = 1e9
        values[rng.random(n) < missing] = None if variable.cuts is None else np.nan
        frame[variable.name] = values
    return pd.DataFrame(frame).assign(kind=rng.choice(np.array(classifier.classes, dtype=object), n))


def codes_of(classifier: Classifier, frame: pd.DataFrame) -> np.ndarray:
    """Return the codes of raw rows by another way than the package's."""
    columns = []
    for variable in classifier.variables:
        name = variable.column or variable.name
        if name not in frame:
            columns.append(np.full(len(frame), MISSING))
            continue
        codes = []
        for value in frame[name]:
            if pd.isna(value):
                codes.append(variable.n_states - 1 if variable.missing_state else MISSING)
            elif variable.cuts is None:
                codes.append(variable.states.index(value) if value in variable.states else UNKNOWN)
            else:
                codes.append(sum(cut < value for cut in variable.cuts))
        columns.append(np.array(codes))
    return np.column_stack(columns)
