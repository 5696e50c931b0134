"""From a table to an additive model: the choice on folds of the training rows, then the fit to all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import repeated_folds, repeats_of, validation_split
from milpbn.data.relevance import of_relevant
from milpbn.data.resolutions import coarse_features, with_fine
from milpbn.data.table import Table
from milpbn.errors import DataWarning, warn
from milpbn.network.additive.choice import (
    SHARPER,
    FoldRows,
    Folds,
    OutOfTime,
    Setup,
    Sources,
    additive,
    choose,
    fit_record,
    trial_of,
)
from milpbn.network.additive.fitting import row_losses
from milpbn.network.additive.interactions import Block, network_of_blocks
from milpbn.network.additive.model import Penalty
from milpbn.network.additive.record import AdditiveFit
from milpbn.network.additive.tables import tables_of
from milpbn.network.cpt import Cpt
from milpbn.network.monotone.check import MonotoneFit
from milpbn.network.monotone.constraints import MonotoneConstraint, StateOrder
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget, Limit

#: Ways to cut continuous columns into coarse intervals, the first one first.
CUTS = ("boosted:8", "quantile:8", "mdl")
#: A further way from so many training rows on; fewer would leave most cells of its pairs empty.
FINER_CUTS, MANY_ROWS = "quantile:16", 1000
#: Those that come first if boosted trees would take too much of the time: rows times classes per second of it, at most.
QUICK_CUTS, MOST_PER_SECOND = "quantile:8", 10_000
#: Up to so many rows the scores may be multiplied by `SHARPER`.
FEW_ROWS = 600
#: Predicted decrease of the loss at which the fit to all rows stops; see `milpbn.network.additive.newton.minimum`.
TOLERANCE = 1e-4
#: Most rows of the choice: its fits take minutes beyond.
MOST_ROWS = 12_000
#: Numbers of folds and repeats up to so many rows.
PLANS = ((250, 5, 5), (500, 5, 2), (4000, 5, 1), (MOST_ROWS, 3, 1))


@dataclass(frozen=True)
class Chosen:
    """The chosen setup with its strengths, where interactions come from, and the record."""

    setup: Setup
    sources: Sources
    record: AdditiveFit

    def interactions(self, data: Dataset, budget: Budget) -> tuple[list[Block], Structure]:
        """Return the interactions that the chosen source finds in all training data, and a structure that holds them.

        The structure is over the coarse features and the class.
        """
        blocks = self.sources.interactions(data, self.setup.structure, budget)
        return blocks, network_of_blocks(data, coarse_features(data), blocks)[0]


def choose_model(
    source: Table | Dataset,
    *,
    sources: Sources,
    budget: Budget,
    cuts: str | None = None,
    kept: Collection[str] = (),
    random_state: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> Chosen | str:
    """Return the model that folds choose, the first one if there is no time for them, or why they cannot choose one.

    The source is training data, of which a dataset keeps its cuts; those of a table are `cuts`, by default what folds
    choose from `CUTS`. Interactions come from `sources`. Of a wide table each fold has the features that say most about
    the class in its training rows, and those to be `kept`.
    """
    index = training_rows(source)
    classes, weights = _classes(source, index)
    if len(index) > MOST_ROWS:
        kept = validation_split(classes, MOST_ROWS / len(index), random_state)[1]
        index, classes, weights = index[kept], classes[kept], weights[kept]
    n_folds, repeats = next((k, r) for most, k, r in PLANS if len(index) <= most)
    n_folds, repeats = min(n_folds, len(index)), max(repeats, repeats_of(classes))
    splits = repeated_folds(classes, n_folds, repeats, random_state)
    if any(len(np.unique(classes[train])) < 2 for train, _ in splits):
        return "Too few rows have another class than most for the folds that choose the tables"

    def parts(cuts: str) -> list[FoldRows]:
        found = []
        for train, held_out in splits:
            if budget.over():
                raise OutOfTime
            found.append(FoldRows(*_encoded(source, cuts, (index[train], index[held_out]), kept), held_out))
        return found

    folds = Folds(parts, sources, weights, repeats, budget, report)
    several = cuts is None and isinstance(source, Table) and "continuous" in source.kinds.values()
    first, *others = CUTS if several else (cuts or "",)
    if several and len(classes) * len(np.unique(classes)) > MOST_PER_SECOND * budget.left():
        first, *others = QUICK_CUTS, *(one for one in CUTS if one != QUICK_CUTS)
    if several and len(index) >= MANY_ROWS:
        others.append(FINER_CUTS)
    setup = Setup(first, penalty=Penalty(ordered=_has_integers(source)))
    try:
        best, tried, complete = choose(folds, setup, others)
    except OutOfTime:
        first_only = (trial_of(setup),)
        record = AdditiveFit(
            trials=first_only, chosen=0, rows=len(index), folds=n_folds, repeats=repeats, complete=False
        )
        return Chosen(setup, sources, record)
    record = fit_record(folds, best, tried, complete, n_folds)
    sharper = len(index) <= FEW_ROWS and folds.mean(folds.sharper[best.candidate]) < folds.mean(best.losses)
    return Chosen(best.candidate, sources, replace(record, sharper=SHARPER) if sharper else record)


def fitted(
    chosen: Chosen,
    data: Dataset,
    blocks: Sequence[Block],
    structure: Structure,
    budget: Budget,
    constraints: Sequence[MonotoneConstraint] = (),
) -> tuple[Structure, tuple[Cpt, ...], MonotoneFit | None] | str:
    """Return a network and its tables for training data with fine variables, or why there are none.

    The structure is over the coarse features, and has a family for each interaction. The first fit is as accurate as
    those of the folds, and has at most `MOST_ROWS` rows. It is completed even after the time limit; `OutOfTime` if
    something else ends it. The second fit, to all rows, starts from it and stops at the limit. A monotone fit is not
    stopped early: `OutOfTime` if the budget ends before it does.
    Beside the tables is what the constraints cost, without the check of them; None without any.
    """
    source, penalty = chosen.setup.structure, chosen.setup.penalty
    some = data
    if data.n_samples > MOST_ROWS:
        some = data.take(validation_split(data.y, MOST_ROWS / data.n_samples, 0)[1])
    untimed = Budget(cancelled=lambda: budget.stop() not in (None, Limit.TIME))
    model = additive(some, source, blocks)
    weights = model.fit(penalty, None, untimed)
    if untimed.over():
        raise OutOfTime
    model = model if some is data else additive(data, source, blocks)
    weights = free = model.fit(penalty, weights, budget, TOLERANCE)
    orders = [StateOrder.of(constraint, data.variables) for constraint in constraints]
    if orders:
        weights = model.fit_monotone(penalty, free, orders, budget.over)
        if budget.over():
            raise OutOfTime
    sharper = chosen.record.sharper
    made = tables_of(
        model, sharper * weights, sharper * penalty.kappa, structure, orders=orders, stopping=budget.over
    )
    if isinstance(made, str) or not orders:
        return made if isinstance(made, str) else (*made, None)
    rows, losses = model.held_out(data), []
    for each in (weights, free):
        of_rows = row_losses(sharper * rows.scores(each, penalty.kappa), rows.classes)
        losses.append(float(np.average(of_rows, weights=rows.weights)))
    return *made, MonotoneFit(features=(), log_loss=losses[0], free_log_loss=losses[1])


def training_data(source: Table | Dataset, cuts: str, kept: Collection[str] = ()) -> tuple[Dataset, Dataset]:
    """Return the training rows on coarse cuts, and the same with fine variables; of features as in `choose_model`."""
    if isinstance(source, Dataset):
        return source, source
    table = _cut(source, source.train_indices, cuts, kept)
    if len(table.features) < len(source.features):
        warn(table.notes[-1], DataWarning)
    coarse = table.dataset("train")
    return coarse, with_fine(coarse, table, table.train_indices)


def training_rows(source: Table | Dataset) -> NDArray[np.int64]:
    """Return the positions of the training rows."""
    return source.train_indices if isinstance(source, Table) else np.arange(source.n_samples)


def _has_integers(source: Table | Dataset) -> bool:
    """Return whether an undeclared column holds three or more integers that are states."""
    if isinstance(source, Table):
        return any(len(source.columns[name].values) > 2 for name in source.few_integers)
    few = {*source.few_integers}
    return any(v.raw_column in few and v.n_states - v.missing_state > 2 for v in source.variables)


def _classes(
    source: Table | Dataset, index: NDArray[np.int64]
) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
    if isinstance(source, Dataset):
        return source.y, source.weights
    return source.columns[source.target].codes[index].astype(np.int64), source.weights[index]


def _cut(table: Table, rows: NDArray[np.int64], cuts: str, kept: Collection[str]) -> Table:
    table = of_relevant(table, rows, kept)
    return table.changed(discretisation=Discretisation.parse(cuts)) if cuts else table


def _encoded(
    source: Table | Dataset,
    cuts: str,
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    kept: Collection[str],
) -> tuple[Dataset, Dataset]:
    """Return training rows with fine variables, and held-out rows with the same variables."""
    train, held_out = rows
    if isinstance(source, Dataset):
        return source.take(train), source.take(held_out)
    table = _cut(source, train, cuts, kept)
    data = with_fine(table.dataset(train), table, train)
    return data, table.encode(data.variables, held_out)
