"""What every model can do: read rows, give probabilities of the classes, and choose a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable
from milpbn.data.encodings import encodings_of
from milpbn.data.options import TextFormat
from milpbn.errors import InputError
from milpbn.network.conformal import Conformal, Tables
from milpbn.network.credible import DRAWS
from milpbn.network.decisions import DO_NOT_KNOW, Costs, DecisionRule
from milpbn.network.inference.queries import Queries
from milpbn.network.margins import log_posterior

if TYPE_CHECKING:
    from milpbn.data.sources import Source as RawSource
    from milpbn.data.table import Table

#: Samples to predict: encoded ones, a table, or a data frame, path, name or array to read.
Source: TypeAlias = "Dataset | Table | RawSource"


class Predictor(ABC):
    """What every learner's model can do, whether or not it is a Bayesian network; `variables` has the class last."""

    variables: tuple[Variable, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes as text, in the order of the columns of all probabilities."""
        return self.variables[-1].states

    @property
    def labels(self) -> NDArray[Any]:
        """The classes in the type that they have in the training data, in the same order, shape (C,)."""
        return self.variables[-1].labels

    @abstractmethod
    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class among `classes`, shape (M,); ties go to the first class."""

    def predict(self, source: Source) -> NDArray[Any]:
        """Return the label of each sample's class, shape (M,); ties go to the first class.

        Labels have the type that they had in the training data: int64 for integers, float64 for other numbers, bool
        for truth values, else object (text). A CSV file has no types; there, labels that are all numbers are numbers,
        and the two labels true and false are truth values, as pandas reads them.
        """
        return self.labels[self.predict_codes(source)]


class ProbabilityPredictor(Predictor):
    """A predictor that has probabilities of the classes, and possibly costs by which it decides."""

    decision: DecisionRule | None = None
    conformal: Conformal | None = None

    @property
    def variable_sets(self) -> tuple[tuple[Variable, ...], ...]:
        """All sets of variables with which rows are encoded; more than one only for an average of networks."""
        return (self.variables,)

    def encode(self, source: Source, *, ignore_unseen: bool = False) -> Dataset:
        """Return samples as state codes; see `milpbn.network.predictor.encode`."""
        has_class = getattr(self, "has_class", True)
        return encode(
            source,
            *self.variable_sets,
            form=form_of(self),
            ignore_unseen=ignore_unseen,
            has_class=has_class,
        )

    @abstractmethod
    def predict_log_posterior(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c | z_m) in nats, shape (M, C); uniform for samples whose probability is 0 for every class."""

    def predict_log_scores(self, source: Source) -> NDArray[np.float64]:
        """Return the logarithms by which classes are compared, shape (M, C): P(c | z_m) times a factor of the row."""
        return self.predict_log_posterior(source)

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class among `classes`, shape (M,); ties go to the first class."""
        return self.chosen(self.predict_log_scores(source))

    def chosen(self, log_scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class that is predicted from `predict_log_scores`: the most probable, or that of least cost."""
        if self.decision is None:
            return log_scores.argmax(axis=1)
        return self.decision.choose(np.exp(log_posterior(log_scores)))

    def predict(self, source: Source) -> NDArray[Any]:
        """Return the label of each sample's class as `Predictor.predict`, or "do not know" where that costs less."""
        return self.answered(self.predict_log_scores(source), self.labels)

    def answered(self, log_scores: NDArray[np.float64], labels: NDArray[Any]) -> NDArray[Any]:
        """Return what is predicted from `predict_log_scores`, where the classes have these labels, shape (C,)."""
        if self.decision is None or not self.decision.may_abstain:
            return labels[self.chosen(log_scores)]
        answers = self.decision.answer(np.exp(log_posterior(log_scores)))
        return np.array([*labels, DO_NOT_KNOW], dtype=object)[answers]

    def deciding(self, costs: Costs | DecisionRule | None, *, positive: str | None = None) -> Self:
        """Return the same model with costs: it predicts the class of least expected cost.

        Parameters
        ----------
        costs : mapping, data frame, DecisionRule or None
            Costs by true label and chosen label; or ``{"missed": 20, "false_alarm": 1}`` of two classes. With
            ``"abstain": 2``, also alone or as a column of costs, the answer is "do not know" where that costs less.
            None: the most probable class is predicted.
        positive : str, optional
            The class that may be missed; by default the one that is less probable without any evidence.

        Raises
        ------
        InputError
            If the costs are not those of the classes, or the model cannot have any.
        """
        if costs is not None and not isinstance(costs, DecisionRule):
            of_two = isinstance(costs, Mapping) and not any(isinstance(v, Mapping) for v in costs.values())
            if positive is not None and of_two:
                costs = {**costs, "positive": positive}
            named = of_two and "positive" in costs
            rarest = None if named or len(self.classes) != 2 else self.rarest()
            costs = DecisionRule.of(costs, self.classes, rarest)
        return self._deciding(costs)

    def _deciding(self, decision: DecisionRule | None) -> Self:
        if not is_dataclass(self):
            raise InputError(f"A {type(self).__name__} cannot have costs.")
        return replace(self, decision=decision)

    def rarest(self) -> str | None:
        """Return the class that is least probable without any evidence; None if the model has no marginals."""
        if not isinstance(self, Queries):
            return None
        found = self.posterior(self.variables[-1].name)
        return min(reversed(self.classes), key=found.__getitem__)

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C); uniform for samples whose probability is 0 for every class.

        The columns are in the order of `classes` (and `labels`).
        """
        return np.exp(self.predict_log_posterior(source))

    def predict_set(self, source: Source, error: float = 0.1, *, by_class: bool = False) -> NDArray[np.bool_]:
        """Return whether each class is in the prediction set of each sample, shape (M, C).

        At most this share of new rows has sets without the true class, or with `by_class` of the new rows of each
        class. What is promised is described by `milpbn.network.parameters.sets.calibrate_sets`, which comes first. The
        most probable class is always in the set. Raises `InputError` if the sets are not calibrated, or on so few rows
        that all of them would hold all classes.
        """
        if self.conformal is None:
            raise InputError(
                "The sets of this classifier are not calibrated; give it rows first: milpbn decide CLASSIFIER DATA "
                "--conformal folds (DATA are the training rows) or new (training has not seen them)."
            )
        data = self.encode(source)
        own = self.predict_proba(data)
        by_folds = [self.with_tables(fold).predict_proba(data) for fold in self.conformal.tables] or [own]
        return self.conformal.sets(by_folds, own, self.classes, error, by_class=by_class)

    @property
    def no_intervals(self) -> str | None:
        """Why the probabilities have no intervals, a clause; None if they have."""
        return "only a single Bayesian network has them, and this classifier is none"

    def predict_interval(
        self, source: Source, share: float = 0.95, *, draws: int = DRAWS, random_state: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of intervals of P(c | z_m), shape (M, C) both.

        See `milpbn.Classifier.predict_interval`. `InputError` if the probabilities have none.
        """
        raise InputError(f"The probabilities have no intervals (--interval): {self.no_intervals}.")

    def intervals_in_words(
        self, source: Source, labels: Sequence[str]
    ) -> tuple[list[str], NDArray[np.float64] | None]:
        """Return 95 % intervals of rows, that of one label each in words (or why there is none), shape (M, C, 2)."""
        if self.no_intervals is not None:
            return [f"The probability has no interval: {self.no_intervals}."] * len(labels), None
        found = np.stack(self.predict_interval(source), axis=-1)
        said = []
        for label, ends in zip(labels, found, strict=True):
            low, high = ends[self.classes.index(label)]
            said.append(f"P({label}) is between {low:.4g} and {high:.4g} (95 % interval of the tables).")
        return said, found

    def with_tables(self, tables: Tables) -> ProbabilityPredictor:
        """Return the same model with other probability tables, those of each network."""
        raise NotImplementedError


class JointPredictor(ProbabilityPredictor):
    """A predictor that compares classes by their joint log-probabilities with the sample."""

    @abstractmethod
    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c, known values of z_m) in nats, shape (M, C)."""

    def predict_log_scores(self, source: Source) -> NDArray[np.float64]:
        """Return `predict_log_joint`."""
        return self.predict_log_joint(source)

    def predict_log_posterior(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c | z_m) in nats, shape (M, C); uniform for samples whose probability is 0 for every class."""
        return log_posterior(self.predict_log_joint(source))


def form_record(data: Dataset) -> dict[str, Any]:
    """Return what the provenance of a classifier holds of the options of its training table: `form_of` reads it."""
    return {"form": dict(data.form)} if data.form else {}


def form_of(classifier: object) -> TextFormat:
    """Return what the options of the training table say about a table for prediction.

    The file of a classifier or an average may hold anything in the provenance; whatever is no such record counts as
    none.
    """
    first = getattr(classifier, "members", (classifier,))[0]
    found = getattr(first, "provenance", {}).get("form")
    try:
        training = TextFormat.of(found if isinstance(found, Mapping) else {})
    except InputError:
        training = TextFormat()
    return TextFormat(na_values=training.na_values, usual=training.decimal)


def encode(
    source: Source,
    *sets: tuple[Variable, ...],
    form: TextFormat | None = None,
    ignore_unseen: bool = False,
    has_class: bool = True,
) -> Dataset:
    """Return all rows as codes of the states of the given variables, or of several sets of them.

    Parameters
    ----------
    source : Dataset, Table, pandas.DataFrame, str or path-like
        A `Dataset` must be encoded with these variables, and is returned unchanged; with several sets it is an
        `Encodings` of all of them, in this order. `milpbn.data.read_encodings` reads other sources: columns are
        matched by name, and columns may be absent. Values without a state become `UNKNOWN`, missing ones `MISSING`.
    *sets : tuples of Variable
        Features first, the class variable last.
    form : TextFormat, optional
        What is known about the cells of text files.
    ignore_unseen : bool
        Warn, and do not refuse the table, if no value of some feature occurs in the training data.
    has_class : bool
        Whether the last variable is a class.

    Warns
    -----
    DataWarning
        If columns are absent; their features are marginalised.
    MilpbnWarning
        If most values of some feature do not occur in the training data, and the table is not refused.

    Raises
    ------
    InputError
        If a dataset has other variables, if the table cannot be read or has none of the features, or if no value of
        some feature occurs in the training data (`milpbn.data.encodings.check_seen`).
    """
    if not isinstance(source, Dataset):
        from milpbn.data import read_encodings  # imported here because only reading needs pandas

        return read_encodings(source, sets, form=form, ignore_unseen=ignore_unseen, has_class=has_class)
    if tuple(data.variables for data in encodings_of(source)) != sets:
        raise InputError(
            f"The data {source.name!r} has other columns or states than the classifier; "
            "encode its table with the classifier's variables."
        )
    return source
