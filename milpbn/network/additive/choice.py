"""The choice of an additive model by log-loss on held-out rows: cuts, interactions, share of naive Bayes, penalties.

Columns of few integers, such as ratings or codes, have an order unless held-out rows say that they have none.

Everything that a candidate learns, cuts and structure included, is learnt on the training rows of each fold. One thing
changes at a time, beginning with a forest on boosted cuts, and interactions are compared again beside the best cuts.
Each candidate gets strengths of its own by coordinate search in factors of 3: one pass, and the best ones more
(successive halving). A small table has little to say about four strengths, so that they have a prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.resolutions import coarse_features
from milpbn.network.additive.fitting import CellRows, row_losses
from milpbn.network.additive.interactions import (
    Block,
    Room,
    all_pairs,
    grown,
    network_of_blocks,
    residual_forest,
)
from milpbn.network.additive.model import Additive, Penalty
from milpbn.network.additive.record import AdditiveFit, AdditiveTrial
from milpbn.network.additive.tables import interactions_of
from milpbn.network.additive.terms import Strengths
from milpbn.network.calibration import SMALLEST_PROBABILITY
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

#: Factor between neighbouring strengths, and their range.
STEP, LEAST, MOST = 3.0, 0.003, 300.0
#: Standard deviation of the prior on the logarithm of a strength, in steps around the first value.
PRIOR_STEPS = 2.0
#: Another candidate must be better by more than this many standard errors of the difference.
CLEARLY = 0.25
#: One that is worse by more than this many with the strengths of the best so far, in the folds until now, is given up.
HOPELESS = 2.0
#: Passes over the strengths of the finalists; first every candidate gets one.
PASSES = 6
#: Candidates that are worse than the best one by at most so many standard errors after one pass are finalists.
FINALISTS = 1.0
KAPPAS = (0.5, 1.0)
#: By what the scores of the fit to all rows are multiplied if that suits held-out rows: its penalties suit fewer rows.
SHARPER = 1.1
#: Share of the time left for finding the interactions of a fold.
SOURCE_SHARE = 0.05


@dataclass(frozen=True)
class Setup:
    """What is compared; the attributes are those of `AdditiveTrial`."""

    cuts: str
    structure: str = "forest"
    penalty: Penalty = field(default_factory=Penalty)

    def changed(self, **values: Any) -> Setup:
        """Return the candidate with other values of some attributes, which may be those of the penalty."""
        own = {name: values.pop(name) for name in ("cuts", "structure") if name in values}
        return replace(self, **own, penalty=replace(self.penalty, **values))


@dataclass(frozen=True)
class Sources:
    """Where interactions come from."""

    #: Returns the exact structure of coarse training data within a budget, or None if it finds none in time; None if it
    #: is not a candidate.
    exact: Callable[[Dataset, Budget], Structure | None] | None = None
    #: Returns the structure of TAN for coarse training data.
    tan: Callable[[Dataset], Structure] | None = None
    #: How large the network of `grown` and `pairs` may be.
    room: Room = field(default_factory=Room)

    def candidates(self, data: Dataset) -> list[str]:
        """Return the quick sources beside the forest, the first candidate, for training data with fine variables."""
        features = coarse_features(data)
        found = ["none"]
        if self.room.most_parents > 2 and len(features) > 2:
            found.append("grown")
            if self.room.holds(data, features, list(combinations(features, 2))):
                found.append("pairs")
        return found

    def interactions(self, data: Dataset, source: str, budget: Budget) -> list[Block]:
        """Return the interactions that a source finds in training data with fine variables.

        `OutOfTime` if an exact search finds none in time.
        """
        if source == "none":
            return []
        if source in ("tan", "exact"):
            coarse = data.of_variables([data.names[i] for i in (*coarse_features(data), data.n_features)])
            if source == "tan":
                return [] if self.tan is None else interactions_of(self.tan(coarse))
            found = None if self.exact is None else self.exact(coarse, budget)
            if found is None:
                raise OutOfTime
            return interactions_of(found)
        plain = Additive(data)
        if source == "forest":
            return residual_forest(plain)
        first = all_pairs(plain) if source == "pairs" else residual_forest(plain)
        return grown(data, first, self.room, budget)


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The training rows of a fold, with fine variables, and its held-out rows with the same variables.

    `positions` has the position of each held-out row among all rows.
    """

    train: Dataset
    held_out: Dataset
    positions: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Compared:
    """A candidate with the mean held-out loss of every row, shape (M,); NaN where it was given up before."""

    candidate: Setup
    losses: NDArray[np.float64]


class OutOfTime(Exception):  # noqa: N818  # no error: the choice ends with what it has
    """Raised if the budget ends."""


class Folds:
    """Fitted models of candidates on the parts of folds.

    `parts` returns the parts for cuts, and is asked once for each; `sources` says where the interactions of a fold come
    from. The rows have weights, shape (M,), and each is held out `repeats` times.
    """

    def __init__(
        self,
        parts: Callable[[str], Sequence[FoldRows]],
        sources: Sources,
        weights: NDArray[np.float64],
        repeats: int,
        budget: Budget,
        report: Callable[[str], None],
    ) -> None:
        self._read, self.sources, self._budget, self._report = parts, sources, budget, report
        self.weights, self.repeats = weights, repeats
        self._parts: dict[str, Sequence[FoldRows]] = {}
        self._models: dict[tuple[str, str, int], tuple[Additive, CellRows]] = {}
        self._starts: dict[tuple[str, str, int, float], NDArray[np.float64]] = {}
        #: Losses of all candidates that were fitted, and those with their scores times `SHARPER`.
        self.known: dict[Setup, NDArray[np.float64]] = {}
        self.sharper: dict[Setup, NDArray[np.float64]] = {}

    def parts(self, cuts: str) -> Sequence[FoldRows]:
        """Return the parts for cuts."""
        if cuts not in self._parts:
            self._parts[cuts] = self._read(cuts)
        return self._parts[cuts]

    def mean(self, losses: NDArray[np.float64]) -> float:
        """Return the mean loss of the rows."""
        return float(np.average(losses, weights=self.weights))

    def difference(self, one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
        """Return the mean difference of losses, and its standard error, over the rows that have both."""
        both = ~np.isnan(one - other)
        more, weights = (one - other)[both], self.weights[both]
        mean = float(np.average(more, weights=weights))
        spread = float(np.average((more - mean) ** 2, weights=weights))
        return mean, math.sqrt(spread / len(more))

    def losses(self, candidate: Setup, rival: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the held-out loss of every row, shape (M,); raise `OutOfTime` if the budget ends.

        A candidate that is `HOPELESS` beside these losses of another one is given up after two folds or more; the other
        rows have NaN.
        """
        if candidate not in self.known:
            total, sharper, times = np.zeros((3, len(self.weights)))
            for number, part in enumerate(self.parts(candidate.cuts)):
                if rival is not None and number > 1:
                    so_far = total / np.where(times > 0, times, np.nan)
                    more, error = self.difference(so_far, rival)
                    if more > HOPELESS * error:
                        return so_far
                model, held_out = self._model(candidate, number, part)
                key = candidate.cuts, candidate.structure, number, candidate.penalty.kappa
                found = model.fit(candidate.penalty, self._starts.get(key), self._budget)
                if self._budget.over():
                    raise OutOfTime
                self._starts[key] = found
                scores = held_out.scores(found, candidate.penalty.kappa)
                seen = held_out.classes >= 0  # others are of classes that the fold's training rows lack
                for factor, losses in ((1.0, total), (SHARPER, sharper)):
                    own = np.full(len(seen), -math.log(SMALLEST_PROBABILITY))
                    own[seen] = row_losses(factor * scores[seen], held_out.classes[seen])
                    losses[part.positions] += own
                times[part.positions] += 1
            self.known[candidate], self.sharper[candidate] = total, sharper = total / times, sharper / times
            self._report(
                f"tables on fine cuts: {describe(candidate)}: held-out log-loss {self.mean(total):.4f}"
            )
        return self.known[candidate]

    def large(self, candidate: Setup) -> bool:
        """Return whether the fits of a candidate are rough (`Additive.large`)."""
        return self._model(candidate, 0, self.parts(candidate.cuts)[0])[0].large

    def _model(self, candidate: Setup, number: int, part: FoldRows) -> tuple[Additive, CellRows]:
        key = candidate.cuts, candidate.structure, number
        if key not in self._models:
            if self._budget.over():
                raise OutOfTime
            budget = self._budget.share(SOURCE_SHARE)
            blocks = self.sources.interactions(part.train, candidate.structure, budget)
            model = additive(part.train, candidate.structure, blocks)
            self._models[key] = model, model.held_out(part.held_out)
        return self._models[key]


def additive(data: Dataset, source: str, blocks: Sequence[Block]) -> Additive:
    """Return the model with these interactions; those of TAN have TAN's own tables as its offset."""
    if source != "tan":
        return Additive(data, blocks)
    features = coarse_features(data)
    families = network_of_blocks(data, features, blocks)[0].parents
    parents = {i: tuple(features[k] for k in own[:-1]) for i, own in zip(features, families, strict=False)}
    return Additive(data, blocks, parents)


def describe(candidate: Setup) -> str:
    """Return a candidate in a few words."""
    strengths = "/".join(f"{value:.3g}" for value in candidate.penalty.strengths.values)
    return f"{trial_of(candidate).describe()}, strengths {strengths}"


def choose(folds: Folds, first: Setup, other_cuts: Sequence[str]) -> tuple[Compared, list[Compared], bool]:
    """Return the chosen candidate, all that were compared, and whether the time sufficed.

    `OutOfTime` if it did not suffice for the first one.
    """
    tried: list[Compared] = []
    best = Compared(first, folds.losses(first))
    complete = True
    try:
        train = folds.parts(first.cuts)[0].train
        structures = folds.sources.candidates(train)
        if "pairs" in structures:  # quick, and the only one that sees some rules
            other = replace(first, structure="pairs")
            found = Compared(other, folds.losses(other, best.losses))
            if folds.difference(found.losses, best.losses)[0] < 0.0:
                best = found
        best = _tuned(folds, best, passes=1)
        tried.append(best)
        changes = _changes(
            other_cuts,
            ["forest", *structures],
            ordered=first.penalty.ordered,
            curves=any(v.cuts is not None and len(v.cuts) > 1 for v in train.variables),
            large=folds.large(first),
            exact=folds.sources.exact is not None,
            tan=folds.sources.tan is not None and train.n_features > 2,
        )
        compared = {_without_strengths(best.candidate)}
        for change in changes:
            other = best.candidate.changed(**change)
            setting = _without_strengths(other)
            if setting in compared:
                continue
            compared.add(setting)
            found = Compared(other, folds.losses(other, best.losses))
            more, error = folds.difference(found.losses, best.losses)
            tried.append(found)
            if more <= HOPELESS * error:
                tried[-1] = found = _tuned(folds, found, passes=1)
                more, error = folds.difference(found.losses, best.losses)
            if -more > CLEARLY * error and found.candidate in folds.known:
                best = found
        for place in sorted(range(len(tried)), key=lambda k: tried[k] is not best):
            one = tried[place]
            more, error = folds.difference(one.losses, best.losses)
            if more > FINALISTS * error or np.isnan(one.losses).any():
                continue
            found = tried[place] = _tuned(folds, one)
            more, error = folds.difference(found.losses, best.losses)
            if one is best or -more > CLEARLY * error:
                best = found
    except OutOfTime:
        complete = False
        tried = tried or [best]
        place = tried.index(best)
        tried[place] = best = _best_known(folds, best)
        if tried[-1] is not best and tried[-1].candidate in folds.known:  # it may be better already
            tried[-1] = last = _best_known(folds, tried[-1])
            more, error = folds.difference(last.losses, best.losses)
            best = last if -more > CLEARLY * error else best
    return best, tried, complete


def _best_known(folds: Folds, one: Compared) -> Compared:
    """Return a candidate with the best strengths that were fitted."""
    strengths = one.candidate.penalty.strengths
    same = (
        Compared(candidate, losses)
        for candidate, losses in folds.known.items()
        if candidate.changed(strengths=strengths) == one.candidate
    )
    return min(same, key=lambda other: _criterion(folds, other))


def _changes(
    other_cuts: Sequence[str],
    structures: Sequence[str],
    *,
    ordered: bool,
    curves: bool,
    large: bool,
    exact: bool,
    tan: bool,
) -> list[dict[str, Any]]:
    """Return what changes of the best candidate so far, one thing at a time; the exact search takes longest.

    The flags: `ordered`, few integers have an order so far; `curves`, a column has more than two intervals; `large`,
    fits are rough, and approach the minimum slowly where curvature is penalised, so that it comes late; `exact` and
    `tan`, interactions can be those of an exact search, and of TAN.

    Interactions are listed twice, because those that lose with the first cuts and penalties may win with the best ones.
    """
    interactions: list[dict[str, Any]] = [{"structure": source} for source in structures]
    curvature: list[dict[str, Any]] = [{"curvature": True}] * curves
    found: list[dict[str, Any]] = [*[{"ordered": False}] * ordered, *curvature * (not large), *interactions]
    found += [*({"kappa": kappa} for kappa in KAPPAS), {"grouped": True}]
    found += [{"structure": "tan", "kappa": 1.0}] * tan  # its interactions are of use beside its tables
    found += [{"cuts": cuts} for cuts in other_cuts]
    return [*found, *interactions, *curvature * large, *[{"structure": "exact"}] * exact]


def _without_strengths(candidate: Setup) -> Setup:
    return candidate.changed(strengths=Strengths())


def _tuned(folds: Folds, one: Compared, *, passes: int = PASSES) -> Compared:
    """Return a candidate with the strengths that coordinate search in steps finds in so many passes."""
    best, value = one, _criterion(folds, one)
    names = _used(folds, one.candidate)
    moved = True
    while moved and passes > 0:
        moved, passes = False, passes - 1
        for name in names:
            for factor in (STEP, 1.0 / STEP):
                while True:
                    strengths = best.candidate.penalty.strengths
                    strength = getattr(strengths, name) * factor
                    if not LEAST / 2 <= strength <= 2 * MOST:
                        break
                    other_strengths = replace(strengths, **{name: float(f"{strength:.6g}")})
                    candidate = best.candidate.changed(strengths=other_strengths)
                    other = Compared(candidate, folds.losses(candidate))
                    criterion = _criterion(folds, other)
                    if criterion >= value - 1e-9:
                        break
                    best, value, moved = other, criterion, True
    return best


def _used(folds: Folds, candidate: Setup) -> list[str]:
    """Return the names of the strengths that matter for a candidate."""
    variables = folds.parts(candidate.cuts)[0].train.variables
    curves = candidate.penalty.ordered or any(v.cuts is not None for v in variables)
    names = ["main_ridge"] + ["main_smoothness"] * curves
    if candidate.structure != "none":
        names += ["pair_ridge"] + ["pair_smoothness"] * curves
    return names


def _criterion(folds: Folds, one: Compared) -> float:
    """Return the mean loss with the prior on the strengths, per unit of weight."""
    pairs = zip(one.candidate.penalty.strengths.values, Strengths().values, strict=True)
    steps = [math.log(value / begin) / math.log(STEP) for value, begin in pairs]
    prior = 0.5 * sum((step / PRIOR_STEPS) ** 2 for step in steps)
    return folds.mean(one.losses) + prior / float(folds.weights.sum())


def trial_of(
    candidate: Setup, log_loss: float | None = None, difference: float = 0.0, standard_error: float = 0.0
) -> AdditiveTrial:
    """Return the record of a candidate; without a log-loss it was not compared."""
    return AdditiveTrial(
        cuts=candidate.cuts,
        structure=candidate.structure,
        **asdict(candidate.penalty.strengths),
        kappa=candidate.penalty.kappa,
        ordered=candidate.penalty.ordered,
        grouped=candidate.penalty.grouped,
        curvature=candidate.penalty.curvature,
        log_loss=log_loss,
        difference=difference,
        standard_error=standard_error,
    )


def fit_record(
    folds: Folds, best: Compared, tried: Sequence[Compared], complete: bool, n_folds: int
) -> AdditiveFit:
    """Return the record of a choice."""
    loss = folds.mean(best.losses)
    gaps = [folds.difference(one.losses, best.losses) for one in tried]
    trials = (trial_of(one.candidate, loss + gap[0], *gap) for one, gap in zip(tried, gaps, strict=True))
    return AdditiveFit(
        trials=tuple(trials),
        chosen=next(k for k, one in enumerate(tried) if one is best),
        rows=len(best.losses),
        folds=n_folds,
        repeats=folds.repeats,
        complete=complete,
    )
