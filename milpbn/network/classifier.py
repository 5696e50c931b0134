"""The Bayesian network classifier: variables, structure and tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable, by_column, dropped_notes
from milpbn.data.encodings import encodings_of
from milpbn.data.options import TextFormat
from milpbn.errors import InputError
from milpbn.network.cards import network_card
from milpbn.network.checks import check_cpts, check_variables
from milpbn.network.cpt import Cpt, fit_cpts, occurring
from milpbn.network.decisions import Costs, DecisionRule
from milpbn.network.explanation.local import LocalExplanation, explain_rows
from milpbn.network.explanation.overall import GlobalExplanation, explain_tables, recorded_gamma
from milpbn.network.inference.queries import Network, Queries
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.margins import log_posterior
from milpbn.network.prior import UNIFORM, check_towards
from milpbn.network.structure import Structure, topological_order
from milpbn.util.jsonable import shorten
from milpbn.util.plurals import counted
from milpbn.version import __version__

if TYPE_CHECKING:
    from milpbn.data.sources import Source as RawSource
    from milpbn.data.table import Table

#: The key of a classifier's provenance that holds the score in words.
DESCRIBED = "described_score"
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

    @property
    def variable_sets(self) -> tuple[tuple[Variable, ...], ...]:
        """All sets of variables with which rows are encoded; more than one only for an average of networks."""
        return (self.variables,)

    def encode(self, source: Source, *, ignore_unseen: bool = False) -> Dataset:
        """Return samples as state codes; see `milpbn.network.classifier.encode`."""
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

    def deciding(self, costs: Costs | DecisionRule | None, *, positive: str | None = None) -> Self:
        """Return the same model with costs: it predicts the class of least expected cost.

        Parameters
        ----------
        costs : mapping, data frame, DecisionRule or None
            Costs by true label and chosen label; or ``{"missed": 20, "false_alarm": 1}`` of two classes. None: the most
            probable class is predicted.
        positive : str, optional
            The class that may be missed; by default the one that is less probable without any evidence.

        Raises
        ------
        InputError
            If the costs are not those of the classes, or the model cannot have any.
        """
        if costs is not None and not isinstance(costs, DecisionRule):
            if positive is not None and isinstance(costs, Mapping):
                costs = {**costs, "positive": positive}
            named = isinstance(costs, Mapping) and "positive" in costs
            rarest = None if named or len(self.classes) != 2 else self._rarest()
            costs = DecisionRule.of(costs, self.classes, rarest)
        return self._deciding(costs)

    def _deciding(self, decision: DecisionRule | None) -> Self:
        if not is_dataclass(self):
            raise InputError(f"A {type(self).__name__} cannot have costs.")
        return replace(self, decision=decision)

    def _rarest(self) -> str | None:
        """Return the less probable of two classes; None if the model has no marginals."""
        if not isinstance(self, Queries):
            return None
        found = self.posterior(self.variables[-1].name)
        return min(reversed(self.classes), key=found.__getitem__)

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C); uniform for samples whose probability is 0 for every class.

        The columns are in the order of `classes` (and `labels`).
        """
        return np.exp(self.predict_log_posterior(source))


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


def score_of(provenance: Mapping[str, Any]) -> str:
    """Return the score with which a classifier was learnt, in words; empty if its provenance does not say it.

    A file may hold anything there. Of files of earlier versions only the name and gamma are told.
    """
    words, score = provenance.get(DESCRIBED), provenance.get("score")
    if isinstance(words, str):
        return words
    if not isinstance(score, Mapping) or not isinstance(score.get("name"), str):
        return ""
    gamma = score.get("gamma")
    return score["name"] + (f", gamma = {gamma:.6g}" if isinstance(gamma, float) else "")


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


class TableClassifier(Queries, JointPredictor):
    """Base of classifiers with one table per variable, which compare classes by sums of log-probabilities.

    Where a row lacks features (`MISSING`), the probabilities of all states that they may have are summed: missing
    features are marginalised, exactly.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    cpts : tuple of Cpt, length V
        One table per variable.
    """

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]
    has_class: bool = True

    def require_class(self) -> None:
        """Refuse a network of all variables: it predicts no class."""
        if not self.has_class:
            raise InputError(
                "This network has no class to predict or to explain; ask it for probabilities (milpbn query), or "
                "learn a classifier from data with a class (--target)."
            )

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, in each row of a table one less than the variable has states.

        Only states count that can occur together.
        """
        found = (occurring(self.variables, cpt) for cpt in self.cpts)
        return sum(int(cells.sum() - cells.any(axis=-1).sum()) for cells in found)

    @property
    def n_features(self) -> int:
        """Number of raw columns that the features code."""
        return len(by_column(self.variables[: -1 if self.has_class else None]))

    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c, known values of z_m) in nats, shape (M, C); see `milpbn.network.inference`.

        If the graph of the tables has cycles (a pseudo-TAN), it is no joint probability. `InputError` if the samples
        cannot be encoded, or the sums over missing features would need too much memory.
        """
        self.require_class()
        data = self.encode(source)
        return log_joint_of_rows(data.codes, data.names, self.cpts, len(self.classes))

    def explain_local(
        self, source: Source, *, label: str | None = None, against: str | None = None
    ) -> tuple[LocalExplanation, ...]:
        """Explain the prediction of every sample: the log-odds of two classes as an exact sum over families.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like
            Samples; see `milpbn.network.classifier.encode`.
        label, against : str, optional
            The classes to compare; by default the most probable ones of the sample.

        Raises
        ------
        InputError
            If the samples cannot be encoded, or a label is not a class of the classifier.
        """
        self.require_class()
        return explain_rows(self.variables, self.cpts, self.encode(source), label, against)

    def explain_global(
        self, source: Source | None = None, *, gamma: float | None = None
    ) -> GlobalExplanation:
        """Explain the classifier: the log-ratios of every family, and on data also importances and margins.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like, optional
            Samples; see `milpbn.network.classifier.encode`.
        gamma : float, optional
            Desired log-margin in nats; samples below it are listed. By default the one that the classifier was learnt
            with, if its provenance says so.

        Raises
        ------
        InputError
            If the samples cannot be encoded or have no weight, or gamma is not positive.
        """
        self.require_class()
        data = None if source is None else self.encode(source)
        if gamma is None:
            gamma = recorded_gamma(getattr(self, "provenance", {}))
        return explain_tables(self.variables, self.cpts, data, gamma)

    def __str__(self) -> str:
        """Return the classifier's tables as text, shortened where there are many features."""
        if not self.has_class:
            return repr(self)
        return str(self.explain_global())


@dataclass(frozen=True, eq=False)
class Classifier(TableClassifier):
    """A Bayesian network over N features and the class variable.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    structure : Structure
        One parent set per variable.
    cpts : tuple of Cpt, length V
        One table per variable.
    smoothing : float
        The Laplace constant with which the tables were estimated.
    provenance : dict
        Origin of the classifier: milpbn's version, the data's name and hash, and the caller's additions
        (score, objective, bound, date, ...); JSON values only.
    smoothing_towards : str
        What the tables were smoothed towards: ``uniform``, ``marginal`` or ``class``, as in `milpbn.Score`.
    has_class : bool
        Whether the last variable is a class. A network without a class has no predictions and no explanations.
    decision : DecisionRule or None
        How a class is chosen from the probabilities; None: the most probable one is (`deciding`).

    Raises
    ------
    InputError
        If variables, structure and tables do not fit together, a table does not hold probabilities, or
        ``smoothing_towards`` is unknown.
    """

    variables: tuple[Variable, ...]
    structure: Structure
    cpts: tuple[Cpt, ...]
    smoothing: float = 1.0
    provenance: dict[str, Any] = field(default_factory=dict)
    smoothing_towards: str = UNIFORM
    has_class: bool = True
    decision: DecisionRule | None = None

    def __repr__(self) -> str:
        size = f"{counted(len(self.structure.arcs), 'arc')}, {counted(self.n_parameters, 'parameter')}"
        if not self.has_class:
            return f"<Classifier without a class: {counted(len(self.variables), 'variable')}, {size}>"
        return (
            f"<Classifier of {shorten(self.variables[-1].name)}: {counted(len(self.classes), 'class', 'classes')}, "
            f"{counted(self.n_features, 'feature')}, {size}>"
        )

    def __post_init__(self) -> None:
        check_variables(self.variables, has_class=self.has_class)
        check_cpts(self.cpts, self.variables, self.structure)
        check_towards(self.smoothing_towards)

    @classmethod
    def fit(
        cls,
        data: Dataset,
        structure: Structure,
        smoothing: float = 1.0,
        provenance: Mapping[str, Any] | None = None,
        *,
        smoothing_towards: str = UNIFORM,
    ) -> Classifier:
        """Estimate the tables of a structure (`fit_cpts`) and return the classifier.

        Parameters
        ----------
        data : Dataset
            Training samples, without unknown values.
        structure : Structure
            Parent sets over the data's variables.
        smoothing : float
            Laplace constant a >= 0.
        provenance : mapping, optional
            Keys that are added to those recorded here (``milpbn``, ``data``), or replace them.
        smoothing_towards : str
            What the tables are smoothed towards: ``uniform``, ``marginal`` or ``class``.

        Raises
        ------
        InputError
            If `fit_cpts` raises it.
        """
        notes = dropped_notes(data.notes)
        recorded = {
            "milpbn": __version__,
            "data": {
                "name": data.name,
                "sha256": data.sha256,
                "samples": data.n_samples,
                "left_out": dict(data.left_out),
                **({"notes": list(notes)} if notes else {}),
            },
            **form_record(data),
        }
        cpts = tuple(fit_cpts(data, structure, smoothing, smoothing_towards))
        about = {**recorded, **(provenance or {})}
        return cls(
            data.variables, structure, cpts, float(smoothing), about, smoothing_towards, data.has_class
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the classes, the number of parameters, and the network."""
        shown = self.column_structure
        return network_card(
            self.variables, len(shown.arcs), self.n_parameters, shown, has_class=self.has_class
        )

    @property
    def column_structure(self) -> Structure:
        """The structure over raw columns, without the arcs within a column; its own if there would be a cycle."""
        columns = by_column(self.variables)
        names = list(columns)
        place = {i: k for k, places in enumerate(columns.values()) for i in places}
        parents = tuple(
            tuple({place[j] for i in places for j in self.structure.parents[i]} - {k})
            for k, places in enumerate(columns.values())
        )
        return self.structure if topological_order(parents) is None else Structure(tuple(names), parents)

    def _network(self) -> Network:
        return Network(self.variables, self.cpts, self.has_class)
