"""The Bayesian network classifier: variables, structure and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable, by_column, dropped_notes
from milpbn.errors import InputError
from milpbn.network.cards import network_card
from milpbn.network.checks import check_cpts, check_variables
from milpbn.network.conformal import Conformal, Tables
from milpbn.network.cpt import Cpt, fit_cpts, occurring
from milpbn.network.credible import DRAWS, credible_intervals
from milpbn.network.decisions import DecisionRule
from milpbn.network.explanation.local import LocalExplanation, decided, explain_rows
from milpbn.network.explanation.overall import GlobalExplanation, explain_tables, recorded_gamma
from milpbn.network.inference.queries import Network, Queries
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.predictor import JointPredictor, Source, form_of, form_record
from milpbn.network.prior import UNIFORM, check_towards
from milpbn.network.structure import Structure, topological_order
from milpbn.util.jsonable import shorten
from milpbn.util.plurals import counted
from milpbn.version import __version__

#: The key of a classifier's provenance that holds the score in words.
DESCRIBED = "described_score"


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


def rows_by_state(data: Dataset) -> list[list[int]]:
    """Return how many rows have each state of every variable; the provenance of a classifier holds it."""
    columns = zip(data.variables, data.codes.T, strict=True)
    return [np.bincount(codes[codes >= 0], minlength=v.n_states).tolist() for v, codes in columns]


class TableClassifier(Queries, JointPredictor):
    """Base of classifiers with one table per variable, which compare classes by sums of log-probabilities.

    Where a row lacks features (`MISSING`), the probabilities of all states that they may have are summed: missing
    features are marginalised, exactly.
    """

    #: Features first, the class variable last, and one table for each of them.
    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]
    has_class: bool = True

    def with_sets(self, sets: Conformal | None) -> Self:
        """Return the same model with calibrated prediction sets, or with None without any."""
        return replace(self, conformal=sets)  # type: ignore[type-var]

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
            Samples; see `milpbn.network.predictor.encode`.
        label, against : str, optional
            The classes to compare; by default the most probable ones of the sample.

        Raises
        ------
        InputError
            If the samples cannot be encoded, or a label is not a class of the classifier.
        """
        self.require_class()
        found = explain_rows(self.variables, self.cpts, self.encode(source), label, against)
        return decided(found, self.decision)

    def explain_global(
        self, source: Source | None = None, *, gamma: float | None = None
    ) -> GlobalExplanation:
        """Explain the classifier: the log-ratios of every family, and on data also importances and margins.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like, optional
            Samples; see `milpbn.network.predictor.encode`.
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
        Origin of the classifier: milpbn's version, the data's name, hash and rows by state of every variable, and the
        caller's additions (score, objective, bound, date, ...); JSON values only.
    smoothing_towards : str
        What the tables were smoothed towards: ``uniform``, ``marginal`` or ``class``, as in `milpbn.Score`.
    has_class : bool
        Whether the last variable is a class. A network without a class has no predictions and no explanations.
    decision : DecisionRule or None
        How a class is chosen from the probabilities; None: the most probable one is (`deciding`).
    conformal : Conformal or None
        What prediction sets are calibrated on (`predict_set`).

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
    conformal: Conformal | None = None

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
                "rows_by_state": rows_by_state(data),
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

    def with_tables(self, tables: Tables) -> Classifier:
        """Return the same model with other probability tables, those of each network."""
        cpts = (
            Cpt(cpt.variable, cpt.parents, table) for cpt, table in zip(self.cpts, tables[0], strict=True)
        )
        return replace(self, cpts=tuple(cpts))

    def predict_interval(
        self, source: Source, share: float = 0.95, *, draws: int = DRAWS, random_state: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of intervals of P(c | z_m), shape (M, C) both.

        They say how far the probabilities can be off because the tables come from so few rows, if the structure is
        right: they hold this share of the probabilities by tables that are drawn from their Dirichlet distributions
        (`milpbn.network.cpt.Cpt.concentration`). Raises `InputError` if the tables are no smoothed counts.
        """
        self.require_class()
        if self.no_intervals is not None:
            return super().predict_interval(source)
        return credible_intervals(self.cpts, self.encode(source), share, draws, random_state)

    @property
    def no_intervals(self) -> str | None:
        """Why the probabilities have no intervals, a clause; None if they have."""
        if all(cpt.concentration is not None for cpt in self.cpts):
            return None
        fit = self.provenance.get("parameters")
        if isinstance(fit, Mapping) and fit.get("fitted") is True:
            return f"the tables were fitted to the classes ({fit.get('method')}), and are not counts of rows"
        if not self.smoothing:
            return "without smoothing, what never occurred has the probability 0 for certain"
        return (
            "the file does not say from how many rows the tables were estimated; learn the classifier again"
        )

    def _network(self) -> Network:
        return Network(self.variables, self.cpts, self.has_class, form_of(self).na_values)
