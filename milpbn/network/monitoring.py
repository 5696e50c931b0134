"""Watching a classifier: whether new rows look like those it was learnt from, and how strange a single row is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, finest
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.calibration import LARGEST_LOSS, losses_of_logs
from milpbn.network.classifier import Classifier, TableClassifier, rows_by_state
from milpbn.network.decisions import DecisionRule
from milpbn.network.evaluation import Evaluation, evaluate, labelled_rows
from milpbn.network.parameters.thresholds import held_out_folds
from milpbn.network.shifts import Excess, Shift, cells, excess, shift
from milpbn.util.jsonable import json_safe
from milpbn.util.validation import real_number

#: Rows of the network with which the strangeness of a row is measured.
SAMPLE = 1000
#: What log P of equal rows may differ by.
ROUNDING = 1e-9
#: Names of what is compared beside the columns.
CLASS, DECISION, LIKELIHOOD = "(class)", "(predicted class)", "(log P(row))"
_SEED = 0


@dataclass(frozen=True, eq=False)
class Monitoring:
    """What `monitor` found: names and numbers of rows, limits, shifts (features first), and with labels the losses.

    The name of the reference is None if it is what the classifier's file says. The figures are those of the new rows.
    """

    data: str
    reference: str | None
    rows: int
    reference_rows: int
    limits: dict[str, float]
    shifts: tuple[Shift, ...]
    losses: tuple[Excess, ...]
    figures: Evaluation | None

    @property
    def alarms(self) -> list[str]:
        """Names of what raised an alarm."""
        found: tuple[Shift | Excess, ...] = (*self.shifts, *self.losses)
        return [one.name for one in found if one.alarm]

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON values."""
        return {"alarms": self.alarms, **json_safe(asdict(self))}


def monitor(
    classifier: TableClassifier | AveragedClassifier,
    new: Dataset,
    reference: Dataset | None = None,
    *,
    psi: float = 0.1,
    loss: float = 0.25,
    alpha: float = 0.01,
) -> Monitoring:
    """Compare new rows with the reference, and raise an alarm where a change is large and cannot be chance.

    Parameters
    ----------
    classifier : Classifier, PseudoClassifier or AveragedClassifier
        The classifier.
    new, reference : Dataset
        Rows, encoded by it. Without a reference, columns and classes are compared with the numbers of training rows in
        each state, which the classifier's file holds; weights are then ignored, missing values only counted unless a
        column has no others, and predictions and log P(row) left out. If the reference is the training rows and the
        classifier can be fitted again, they are judged by tables of folds that hold them out.
    psi : float
        Limit of the population stability index. An alarm needs a larger one, and a small p-value.
    loss : float
        Limit of a log-loss or cost: its excess over the value that the probabilities predict, less the excess in the
        reference, as a share of that value. An alarm needs a larger share, and a small p-value.
    alpha : float
        Probability of a false alarm in the whole comparison, at most; every figure that is judged gets an equal part.

    Raises
    ------
    InputError
        If there are no rows, a limit is out of range, or a file without the rows by state has no reference.
    """
    psi, loss, alpha = (real_number(*item) for item in (("psi", psi), ("loss", loss), ("alpha", alpha)))
    if psi < 0 or loss < 0 or not 0 < alpha < 1:
        raise InputError("--psi and --loss are numbers of at least 0, and --alpha is above 0 and below 1.")
    sets = [rows.take(np.flatnonzero(rows.weights > 0)) for rows in (new, reference) if rows is not None]
    if not all(rows.n_samples for rows in sets):
        raise InputError("There are no rows with a positive weight to compare.")
    new, *given = sets
    rng = np.random.default_rng(_SEED)
    if not given:
        counts = _training_counts(classifier)
        shifts = [*_shifts(replace(new, weights=np.ones(new.n_samples)), counts, rng, known=True)]
        views: list[View] = []
    else:
        [reference] = given
        counts = [
            cells(codes, reference.weights, v.n_states)
            for v, codes in zip(reference.variables, reference.codes.T, strict=True)
        ]
        views = _views(classifier, reference)
        shifts = [*_shifts(new, counts, rng), *_of_rows(classifier, new, reference, views, rng)]
    losses = _losses(classifier, new, views)
    each = alpha / max(1, len(shifts) + len(losses))
    return Monitoring(
        data=new.name,
        reference=None if reference is None else reference.name,
        rows=new.n_samples,
        reference_rows=int(max(before.sum() for before in counts)) if not given else given[0].n_samples,
        limits={"psi": psi, "loss": loss, "alpha": alpha, "p_value": each},
        shifts=tuple(replace(found, alarm=found.psi > psi and found.p_value <= each) for found in shifts),
        losses=tuple(replace(found, alarm=found.share > loss and found.p_value <= each) for found in losses),
        figures=evaluate(classifier, new) if losses else None,
    )


def strangeness(classifier: TableClassifier, data: Dataset) -> NDArray[np.float64]:
    """Return the share of rows of the network that are more probable than each row, shape (M,).

    It is near 1 for a row unlike almost all that the network generates, and compares log P(known features of the row).
    The rows of the network, `SAMPLE` with a fixed seed, lack the features that the row lacks. Values that training
    never saw count as missing.

    Raises
    ------
    InputError
        If the model has no joint distribution.
    """
    codes = np.where(data.codes < 0, MISSING, data.codes)
    if data.has_class:
        codes[:, -1] = MISSING
    sample = classifier.sample(SAMPLE, random_state=_SEED)
    patterns, of_row = np.unique(codes == MISSING, axis=0, return_inverse=True)
    shares = np.empty(len(codes))
    for number, pattern in enumerate(patterns):
        own = np.flatnonzero(of_row.ravel() == number)
        both = np.concatenate([np.where(pattern, MISSING, sample.codes), codes[own]]).astype(np.int32)
        logs = _log_likelihood(classifier, replace(sample, codes=both, weights=np.ones(len(both))))
        drawn = np.sort(logs[:SAMPLE])
        shares[own] = 1 - np.searchsorted(drawn, logs[SAMPLE:] + ROUNDING, side="right") / SAMPLE
    return shares


#: Rows, and a classifier whose tables were not fitted to them.
View: TypeAlias = "tuple[TableClassifier | AveragedClassifier, Dataset]"


def _views(classifier: TableClassifier | AveragedClassifier, reference: Dataset) -> list[View]:
    """Return the reference rows; of training rows those of each fold, or none if tables cannot be fitted by folds."""
    if isinstance(classifier, Classifier) and reference.has_class and (reference.y >= 0).any():
        rows = labelled_rows(reference)
        try:
            folds = held_out_folds(classifier, rows)
            return [(classifier.with_tables(fold.tables), rows.take(fold.rows)) for fold in folds]
        except InputError:
            whole = reference.take(np.flatnonzero((reference.codes >= 0).all(axis=1)))
            with suppress(InputError):
                trained = [own[:-2].tolist() for own in _training_counts(classifier)]
                if rows_by_state(whole) == trained:
                    return []
    return [(classifier, reference)]


def _log_likelihood(classifier: TableClassifier, data: Dataset) -> NDArray[np.float64]:
    """Return log P(known features), where values that training never saw are not known."""
    codes = np.where(data.codes == UNKNOWN, MISSING, data.codes)
    if data.has_class:
        codes[:, -1] = MISSING
    return classifier.log_likelihood(replace(data, codes=codes))


def _training_counts(classifier: TableClassifier | AveragedClassifier) -> list[NDArray[np.int64]]:
    """Return the training rows by state of every variable, in the form of `cells`, or refuse a file without them."""
    first: Any = classifier.members[0] if isinstance(classifier, AveragedClassifier) else classifier
    try:
        found = [np.array([*own, 0, 0], np.int64) for own in first.provenance["data"]["rows_by_state"]]
        if [len(own) - 2 for own in found] == [v.n_states for v in first.variables]:
            return found
    except (AttributeError, KeyError, TypeError, ValueError):
        pass  # the provenance of a file may hold anything
    raise InputError(
        "The classifier's file does not say how many training rows have each state; name the training rows with "
        "--reference."
    )


def _shifts(
    new: Dataset, counts: Sequence[NDArray[np.int64]], rng: np.random.Generator, *, known: bool = False
) -> Iterator[Shift]:
    """Yield the shift of every raw column, in its finest states, and of the class if its labels are known."""
    for column, i in finest(new.variables).items():
        is_class = new.has_class and i == len(new.variables) - 1
        states, before = new.variables[i].states, counts[i]
        now = cells(new.codes[:, i], new.weights, len(states))
        if not is_class or (before[:-1].any() and now[:-1].any()):
            # The file counts no missing values, but a column of these only is lost.
            some = is_class or (known and bool(now[:-1].any()))
            yield shift(CLASS if is_class else column, states, before, now, rng, known=some)


def _of_rows(
    classifier: TableClassifier | AveragedClassifier,
    new: Dataset,
    reference: Dataset,
    views: Sequence[View],
    rng: np.random.Generator,
) -> Iterator[Shift]:
    """Yield the shifts of the predicted class and of log P(row)."""
    if new.has_class:
        before, now = (
            cells(classifier.predict_codes(rows), rows.weights, len(classifier.classes))
            for rows in (reference, new)
        )
        yield shift(DECISION, classifier.classes, before, now, rng)
    if not isinstance(classifier, Classifier) or not views:
        return
    # New rows are compared with those of each fold by the same tables, since log P(row) may have few values.
    before, mean = np.zeros(12, np.int64), np.zeros(12)
    for tables, held in views:
        assert isinstance(tables, Classifier)
        theirs, ours = (_log_likelihood(tables, rows) for rows in (held, new))
        cuts = np.quantile(np.concatenate([theirs, ours]), np.arange(1, 10) / 10) + ROUNDING
        before += cells(np.searchsorted(cuts, theirs), held.weights, 10)
        mean += cells(np.searchsorted(cuts, ours), new.weights, 10) / len(views)
    labels = [f"tenth {k} from below" for k in range(1, 11)]
    yield shift(LIKELIHOOD, labels, before, np.rint(mean).astype(np.int64), rng)


def _losses(
    classifier: TableClassifier | AveragedClassifier, new: Dataset, views: Sequence[View]
) -> list[Excess]:
    """Compare log-loss and cost of the rows with a label with what the probabilities expect."""
    if not new.has_class:
        return []
    known = [
        (view, rows.take(np.flatnonzero(rows.y != MISSING))) for view, rows in (*views, (classifier, new))
    ]
    if not known[-1][1].n_samples:
        return []
    judged = [(rows, view.predict_log_posterior(rows)) for view, rows in known if rows.n_samples]
    rule = classifier.decision
    rules = {"log-loss": None} if rule is None or rule.is_threshold else {"log-loss": None, "cost": rule}
    found = []
    for name, costs in rules.items():
        *before, now = [(*_lost(costs, rows.y, logs), np.exp(logs), rows.weights) for rows, logs in judged]
        more = [own - (p * by_class).sum(axis=1) for own, by_class, p, _ in before]
        beside = (np.concatenate(more), np.concatenate([part[3] for part in before])) if before else None
        found.append(excess(name, *now, reference=beside))
    return found


def _lost(
    costs: DecisionRule | None, y: NDArray[np.integer], logs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the loss of each row, shape (M,), and the one in each class, shape (M, C); without costs the log-loss."""
    if costs is None:
        return losses_of_logs(logs, y), np.minimum(-logs, LARGEST_LOSS)
    answers = costs.answer(np.exp(logs))
    every = [costs.of_rows(np.full_like(y, c), answers) for c in range(logs.shape[1])]
    return costs.of_rows(y, answers), np.column_stack(every)
