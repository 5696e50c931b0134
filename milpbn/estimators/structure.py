"""Exact structure learning of a network of all variables, without a class."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from milpbn.claims.result import Result
from milpbn.data import Dataset
from milpbn.data.encodings import unknown_values
from milpbn.data.frames import warn_of_order
from milpbn.data.weights import require_range
from milpbn.errors import DataWarning, InputError, warn
from milpbn.estimators.inputs import weights_of_rows
from milpbn.estimators.network import NetworkEstimator
from milpbn.estimators.parameters import SearchParameters, estimator
from milpbn.estimators.searched import figures_of, finished, found_or_smallest, warn_of_gap
from milpbn.estimators.settings import options_of, score_of
from milpbn.network.formats.libraries import to_networkx, to_pgmpy
from milpbn.solving.api import maximise
from milpbn.solving.question import Question

if TYPE_CHECKING:
    import networkx as nx
    from pgmpy.models import DiscreteBayesianNetwork


@estimator
class BayesianNetworkStructure(SearchParameters, NetworkEstimator):
    """Bayesian network of all columns whose structure is proved to maximise a score, or is known to be within a gap.

    No column is a class. The search may be stopped by `time_limit` or by Ctrl-C; it then keeps the best structure so
    far, with its proven gap.

    Parameters
    ----------
    objective : {"bdeu", "mdl", "bic", "aic", "aicc", "ll"}, default="bdeu"
        The score that the structure maximises. (It is called `score` elsewhere in milpbn, which is a method of an
        estimator.)
    max_parents : int, default=3
        The most parents of a variable.
    {score}
    {search}
    memory_limit, gap_rel, gap_abs, gap_se, backend, start, n_best, within, solver_options, output, trace, log, \
interrupted
        How to search, and what to write; see `milpbn.solving.options.Options`.
    {data}
    discretise : str, default="quantile:5"
        How continuous columns are cut into intervals: ``quantile:K``, ``uniform:K`` or ``kmeans:K``. The cuts of
        ``mdl`` need a class.
    random_state : int, RandomState or None, default=0
        Seed. With an int and no time limit, a fit can be repeated exactly.

    Attributes
    ----------
    causal_graph_, graph_ : networkx.DiGraph
        The structure; both are the same. Networks with the same edges and the same v-structures, whatever the other
        directions (`milpbn.network.equivalence`), fit data equally well, so that a direction is no proof of a cause.
    structure_ : dict of str to list of str
        Parents of every variable. Columns of arrays are called ``x0``, ``x1``, ...
    {figures}
    classifier_ : Classifier
        The network with its tables, without a class; `milpbn.network.save_classifier` writes it.
    n_dropped_, n_features_in_, feature_names_in_
        As in the other estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from milpbn.sklearn import BayesianNetworkStructure
    >>> model = BayesianNetworkStructure(discretise="quantile:3").fit(load_iris(as_frame=True).data)
    >>> model.optimal_, len(model.graph_.edges)
    (True, 3)
    """

    objective: str = "bdeu"
    max_parents: int = 3
    discretise: str = "quantile:5"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BayesianNetworkStructure:
        """Search for the best structure, fit its tables, and return the fitted estimator itself.

        Parameters
        ----------
        X : array-like or data frame, shape (M, V)
            The variables.
        y : object
            Not used.
        sample_weight : array-like, shape (M,), optional
            Weights. A weight of 2 is the same as two rows, and a weight of 0 the same as none.

        Raises
        ------
        ValueError
            If data or options are unusable (`milpbn.InputError` and scikit-learn's own errors).
        NotSavedError
            If a file could not be written at the end; the estimator is fitted.
        NoIncumbentError
            If constraints require paths, and the time ends before a structure with them is found.
        SolverError
            If the solver fails.

        Warns
        -----
        ConvergenceWarning
            If the structure is not proved best, and the gap is larger than the one that was asked for.
        """
        began = time.monotonic()
        data = self._data(X, sample_weight)
        score, options = score_of(self), options_of(self, None)
        asked = Question.of(
            data, score, self.constraints, screen=self.screen, random_state=options.random_state
        )

        def search() -> Result:
            return maximise(asked, options, started=began)

        result, unsaved = finished(lambda: found_or_smallest(self, search, asked, options, began))
        assert result.structure is not None
        self._set(figures_of(result))
        self._set({"classifier_": result.classifier, "structure_": result.structure.to_mapping()})
        warn_of_gap(result)
        if unsaved is not None:
            raise unsaved
        return self

    def _data(self, X: Any, sample_weight: Any) -> Dataset:
        """Return the rows of positive weight as data without a class."""
        frame = self._features(X, "no_validation")
        if frame.shape[1] < 2:
            raise InputError(
                "X has 1 feature(s) (n_features = 1), and a network of one variable has no arcs; give at least two."
            )
        warn_of_order(X, sample_weight, "sample_weight")
        weights = weights_of_rows(sample_weight, frame)
        present = weights > 0  # rows of weight 0 count as absent, also their values
        frame, weights = frame[present].reset_index(drop=True), weights[present]
        table = self._read(X, frame, weights)
        require_range(table.weights, "The sample weights")
        return table.dataset("train")

    @property
    def graph_(self) -> nx.DiGraph:
        """The structure as a graph of networkx (`milpbn.network.to_networkx`); ValueError if that is not installed."""
        check_is_fitted(self)
        return to_networkx(self.classifier_.structure)

    causal_graph_ = graph_

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of samples in nats, for validation; X is as for `score_samples`.

        Warns
        -----
        DataWarning
            If values were never seen in training: that they contribute nothing makes the mean larger.
        """
        data = self._encoded(X)
        if unseen := sum(unknown_values(data).values()):
            plural = "value was" if unseen == 1 else "values were"
            text = f"{unseen} {plural} never seen in training; that they contribute nothing makes the score larger"
            warn(f"{text}, so compare it with scores of the same rows only.", DataWarning)
        return float(np.mean(self._queries().log_likelihood(data)))

    def to_pgmpy(self) -> DiscreteBayesianNetwork:
        """Return the network as a model of pgmpy, with its tables (`milpbn.network.to_pgmpy`).

        Raises
        ------
        ValueError
            If pgmpy is not installed.
        """
        check_is_fitted(self)
        return to_pgmpy(self.classifier_)
