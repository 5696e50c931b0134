"""Exact structure learning as a scikit-learn classifier."""

from __future__ import annotations

import copy
import os
import time
from dataclasses import replace
from functools import partial
from typing import Any

from milpbn.claims.result import Result
from milpbn.data import Table
from milpbn.data.dataset import dropped_notes
from milpbn.errors import DataWarning, MilpbnWarning, warn
from milpbn.estimators.base import BaseBNClassifier
from milpbn.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from milpbn.estimators.parameters import SearchParameters, estimator
from milpbn.estimators.searched import figures_of, finished, found_or_smallest, warn_of_gap
from milpbn.estimators.settings import choices_of, given_to, of_columns, options_of, score_of
from milpbn.solving.grid import DISCRETISE
from milpbn.solving.question import Question
from milpbn.solving.selection import Approach


@estimator
class MaxMarginBNClassifier(CallbackSupportMixin, SearchParameters, BaseBNClassifier):
    """Bayesian network classifier whose structure is proved to maximise a score, or is known to be within a gap of it.

    The default score is the probabilistic soft margin of Peharz & Pernkopf (2012). The search may be stopped at any
    time, by `time_limit`, by Ctrl-C, or by a callback of scikit-learn; it then keeps the best structure so far, with
    its proven gap.

    Parameters
    ----------
    objective : str, default="sm"
        The score that the structure maximises: ``sm``, ``sbm``, ``hard-margin``, ``cll``, ``ll``, ``mdl``, ``aic``,
        ``aicc`` or ``bdeu``. (It is called `score` elsewhere in milpbn, which is a method of an estimator.)
    recipe : {"accurate", "readable"} or None, default=None
        Choose cuts, parameters and more by held-out log-loss: curves and tables on fine cuts, or from a recommended
        grid. Options that differ from their defaults stay as they are. Without `time_limit` it takes at most 10
        minutes. Rows are split at random, so that a row of weight 2 may differ from two rows.
    select : str or None, default=None
        Choose options by validation before the final search, from a grid such as ``"p=.6,.9 max-parents=1,2"``, as
        ``milpbn solve --select`` does; "default" is a grid for a first try. `result_.selection` has the choice and all
        trials. Half of `time_limit` is for the trials; without it, each trial may take a minute.
    select_by : {"accuracy", "log-loss", "roc-auc", "average-precision", "cost"} or None, default=None
        What the recipe "readable", `select`, ``p="cv"`` and ``max_parents="cv"`` compare on held-out rows; None means
        log-loss with the recipe, and else accuracy.
    average : int, default=1
        With "readable" or another selection, average the posteriors of the networks of so many of its best settings.
        Structure, bound and gap are those of the best one, and there is no `predict_joint_log_proba`.
    p : float, "cv" or None, default=None
        The margin that is enough, as a probability: a sample whose class is more probable, against the strongest other
        one, adds no more to the score. None is 0.99 without `gamma`; "cv" chooses from eight values by validation.
    max_parents : int or "cv", default=2
        The most parents of a variable, the class included; "cv" chooses 1 or 2 by validation.
    parent_sets : {"auto", "paper", "all"}, default="auto"
        Candidate parent sets of the features; see `milpbn.Score`. Where it leaves out sets that a better structure may
        have, ``bound_`` and ``gap_`` are about the structures that ``result_.among`` names.
    leave_one_out : bool, default=False
        Score each sample with parameters that are estimated without it. If a weight is below 1, all weights are
        multiplied by one factor, so that the smallest is 1.
    {score}
    parameters : str or None, default=None
        How the structure found gets its parameters: ``ml``, ``cll``, ``hybrid`` or ``temperature``. None leaves the
        choice to a recipe, and means ``ml`` without one; "accurate" takes None only.
    monotone : mapping, array-like or None, default=None
        Features in which the log-odds of a class never fall (1 or "+") or never rise (-1 or "-"), whatever the others
        are: by name, such as ``{"age": 1}``, or a number for each column, as ``monotonic_cst`` of scikit-learn. Of two
        classes it is about the rarer one, unless ``"positive"`` names it. `result_.parameters.monotone` has what it
        costs.
    subset : int or None, default=None
        Sum the margins over this many representative samples only; ``result_.bound`` is one over all samples.
    {search}
    memory_limit : int or None, default=None
        Bytes of memory for the process and its child processes; see `milpbn.solving.options.Options`.
    gap_rel, gap_abs, gap_se : float, default=0.0
        Stop when the gap is at most this, relative to the bound, in nats, or in standard errors of the score (its
        estimated standard deviation over data sets of this size).
    backend : str, default="auto"
        ``auto``, ``native``, ``branch-and-cut``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}, default="order"
        How a MILP excludes cycles.
    start : Structure or None, default=None
        A structure to start from, over the names in `structure_`.
    heuristic_start : bool, default=True
        Start a MILP solver from the best structure of the heuristics. (It is called `warm_start` elsewhere in milpbn,
        which means something else in scikit-learn.)
    n_best : int, default=1
        How many of the best structures to find, in ``result_.alternatives``, with a bound on all others.
    within : float or None, default=None
        Find all structures whose score is at most so many nats below the best one, up to `n_best`, or 1000.
    workers : int or None, default=None
        Search in so many processes on this machine instead of `n_jobs` threads; needs the extra ``dask``.
    dask : str, dask.distributed.Client or None, default=None
        Search on the workers of a Dask cluster: the address or file of its scheduler, or a client, which copies by
        `sklearn.base.clone` share. In a pickle, and so in other processes, is its address instead.
    root_bound, root_only, reduce, merge, solver_options, output, trace, certificate, checkpoint, resume, log, \
interrupted
        How to search, and what to write; see `milpbn.solving.options.Options`.
    {data}
    missing : {"drop", "state", "error", "select"}, optional
        What to do with missing values in training: drop the rows that have any (with a `milpbn.DataWarning`, and their
        number in ``n_dropped_``), give those of a feature a state of their own, refuse them, or let the recipe or
        `select` choose between the first two. By default a recipe chooses, and else the rows are dropped. Predictions
        take them, too, except with "error", and marginalise them unless they have a state.
    random_state : int, RandomState or None, default=0
        Seed. With an int, one thread and no time limit, a fit can be repeated exactly.

    Attributes
    ----------
    {fitted}
    {figures}
    classifier_ : Classifier or AveragedClassifier
        The model; `milpbn.network.save_classifier` writes it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from milpbn.sklearn import MaxMarginBNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginBNClassifier(p=0.9).fit(X, y)
    >>> model.optimal_, model.stop_reason_
    (True, 'optimal')
    """

    objective: str = "sm"
    recipe: str | None = None
    missing: str | None = None
    select: str | None = None
    select_by: str | None = None
    average: int = 1
    p: float | str | None = None
    gamma: float | None = None
    max_parents: int | str = 2
    class_parents: bool = True
    smoothing_towards: str = "uniform"
    parent_sets: str = "auto"
    penalty: float | str = 0.0
    hybrid: float = 0.0
    leave_one_out: bool = False
    parameters: str | None = None
    monotone: Any = None
    subset: int | None = None
    acyclicity: str = "order"
    heuristic_start: bool = True
    root_bound: bool = True
    root_only: bool = False
    reduce: bool = True
    merge: bool = True
    certificate: str | os.PathLike[str] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    workers: int | None = None
    dask: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or to pickle, with the address of a Dask client, which no other process can use."""
        scheduler = getattr(self.dask, "scheduler", None)
        return {**super().__getstate__(), "dask": getattr(scheduler, "address", self.dask)}

    def __sklearn_clone__(self) -> MaxMarginBNClassifier:
        """Return an unfitted copy with the same Dask client."""
        made: MaxMarginBNClassifier = super(MaxMarginBNClassifier, copy.copy(self)).__sklearn_clone__()
        made.dask = self.dask
        return made

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginBNClassifier:
        """Search for the best structure, fit its parameters, and return the fitted classifier itself.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        y : array-like, shape (M,)
            Class labels of any type.
        sample_weight : array-like, shape (M,), optional
            Weights. A weight of 2 is the same as two rows, and a weight of 0 the same as none.

        Raises
        ------
        ValueError
            If data or options are unusable (`milpbn.InputError` and scikit-learn's own errors).
        NotSavedError
            If a file could not be written at the end; the classifier is fitted.
        SolverError
            If the solver fails.

        Warns
        -----
        ConvergenceWarning
            If the structure is not proved best, and the gap is larger than the one that was asked for.
        """
        began = time.monotonic()
        task = FitTask(self, X, y, sample_weight)
        table = self._table(X, y, sample_weight)
        result, unsaved = finished(lambda: self._search(X, table, task, began))
        self._set(self._attributes(result))
        self.feature_importances_ = self._importances(table)
        if result.data.samples < table.n_rows:  # the recipe has dropped rows
            self.n_dropped_ += table.n_rows - result.data.samples
            warn(" ".join(dropped_notes(result.notes)), DataWarning)
        task.end()
        self._warn(result)
        if unsaved is not None:
            raise unsaved
        return self

    def _search(self, X: Any, table: Table, task: FitTask, began: float) -> Result:
        """Return the result of the search, or of the smallest model if there is no time for a search."""
        given, options = given_to(self), options_of(self, task.hook(self._attributes))
        options = replace(options, monotone=of_columns(self.monotone, X))
        approach = Approach.of(choices_of(self), score_of(self), options, given)
        grid = approach.grid
        if approach.score.needs_units or (grid is not None and True in grid.others.get("leave-one-out", ())):
            table = table.in_units()
        data = table.dataset("train")
        search = partial(
            approach.maximise,
            table if approach.cuts else data,
            self.constraints,
            subset=self.subset,
            screen=self.screen,
            started=began,
            discretise=str(table.discretisation) if DISCRETISE in given else None,
        )
        return found_or_smallest(
            self, search, Question(data, approach.score, self.constraints), options, began
        )

    def _attributes(self, result: Result) -> dict[str, Any]:
        """Return the fitted attributes that belong to a result with a structure."""
        assert result.classifier is not None
        return {**self._fitted(result.classifier, result.structure), **figures_of(result)}

    def _warn(self, result: Result) -> None:
        """Warn if no feature matters, and as `warn_of_gap` does."""
        alone = result.structure is not None and not result.structure.markov_blanket
        if alone and result.limit is None and result.average is None:
            said = "No arc joins the class: every row gets the same class."
            warn(f"{said} Another objective, or a larger p, may use the features.", MilpbnWarning)
        warn_of_gap(result)
