"""Exact structure learning as a scikit-learn classifier."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from milpbn.claims.reasons import Limit
from milpbn.claims.result import NotSavedError, Reason, Result
from milpbn.data import Table
from milpbn.data.dataset import dropped_notes
from milpbn.errors import DataWarning, InputError, MilpbnWarning, NoIncumbentError, warn
from milpbn.estimators.base import BaseBNClassifier
from milpbn.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from milpbn.estimators.inputs import Columns
from milpbn.estimators.settings import choices_of, given_to, options_of, score_of
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.solving.api import maximise
from milpbn.solving.question import Question
from milpbn.solving.selection import maximise_selected
from milpbn.solving.smallest import smallest_model
from milpbn.util import interrupts


class MaxMarginBNClassifier(CallbackSupportMixin, BaseBNClassifier):
    """Bayesian network classifier whose structure is proved to maximise a score, or is known to be within a gap of it.

    The default score is the probabilistic soft margin of Peharz & Pernkopf (2012). The search may be stopped at any
    time, by `time_limit`, by Ctrl-C, or by a callback of scikit-learn; it then keeps the best structure so far, with
    its proven gap.

    Parameters
    ----------
    objective : str, default="sm"
        The score that the structure maximises: ``sm``, ``sbm``, ``hard-margin``, ``cll``, ``ll``, ``mdl``, ``aic``,
        ``aicc`` or ``bdeu``. (It is called `score` elsewhere in milpbn, which is a method of an estimator.)
    recipe : {"accurate"} or None, default=None
        Choose options of the score, cuts and parameters by held-out log-loss from a recommended grid. Options that
        differ from their defaults stay as they are, and so does ``parameters="ml"``. Without `time_limit` it takes at
        most 10 minutes. Rows are split at random, so that a row of weight 2 may differ from two rows.
    select : str or None, default=None
        Choose options by validation before the final search, from a grid such as ``"p=.6,.9 max-parents=1,2"``, as
        ``milpbn solve --select`` does; "default" is a grid for a first try. `result_.selection` has the choice and all
        trials. Half of `time_limit` is for the trials; without it, each trial may take a minute.
    select_by : {"accuracy", "log-loss"} or None, default=None
        What a recipe, `select`, ``p="cv"`` and ``max_parents="cv"`` compare on held-out rows; None means what the
        recipe compares, log-loss, or else accuracy.
    average : int, default=1
        With a recipe or another selection, average the posteriors of the networks of so many of its best settings.
        Structure, bound and gap are those of the best one, and there is no `predict_joint_log_proba`.
    p : float, "cv" or None, default=None
        The margin that is enough, as a probability: a sample whose class is more probable, against the strongest other
        one, adds no more to the score. None is 0.99 without `gamma`; "cv" chooses from eight values by validation.
    gamma : float or None, default=None
        The same in nats, log(p / (1 - p)); give one of the two.
    max_parents : int or "cv", default=2
        The most parents of a variable, the class included; "cv" chooses 1 or 2 by validation.
    class_parents : bool, default=True
        Whether the class may have parents.
    smoothing : float, default=1.0
        Laplace constant of the parameters.
    smoothing_towards : {"uniform", "marginal", "class"}, default="uniform"
        What the parameters are shrunk towards; see `milpbn.Score`.
    parent_sets : {"auto", "paper", "all"}, default="auto"
        Candidate parent sets of the features; see `milpbn.Score`. Where it leaves out sets that a better structure may
        have, ``bound_`` and ``gap_`` are about the structures that ``result_.among`` names.
    equivalent_sample_size : float, default=1.0
        Of ``bdeu``.
    penalty : float, "bic" or "aic", default=0.0
        Nats per free parameter, subtracted from a discriminative score.
    hybrid : float, default=0.0
        Factor of the log-likelihood that is added to a discriminative score.
    leave_one_out : bool, default=False
        Score each sample with parameters that are estimated without it. If a weight is below 1, all weights are
        multiplied by one factor, so that the smallest is 1.
    parameters : str or None, default=None
        How the structure found gets its parameters: ``ml``, ``cll``, ``hybrid`` or ``temperature``. None leaves the
        choice to a recipe, and means ``ml`` without one.
    constraints : Constraints or None, default=None
        Arcs that are required or forbidden, and more; see `milpbn.Constraints`.
    subset : int or None, default=None
        Sum the margins over this many representative samples only; the bound then holds for their sum only.
    screen : int or None, default=None
        Search only over this many promising parent sets per variable, beside the small ones; the bound then holds for
        structures over these sets only, and ``bound_`` and ``gap_`` are NaN.
    time_limit : float or None, default=None
        Wall-clock seconds from the call of `fit`; None searches for a proof as long as it takes. With 0, and if the
        time ends before there is a structure, the model has no arcs but those that the constraints require.
    memory_limit : int or None, default=None
        Bytes of memory for the process and its child processes; see `milpbn.solving.options.Options`.
    gap_rel, gap_abs : float, default=0.0
        Stop when the gap is at most this, relative to the bound or in nats.
    backend : str, default="auto"
        ``auto``, ``native``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}, default="order"
        How a MILP excludes cycles.
    start : Structure or None, default=None
        A structure to start from, over the names in `structure_`.
    heuristic_start : bool, default=True
        Start a MILP solver from the best structure of the heuristics. (It is called `warm_start` elsewhere in milpbn,
        which means something else in scikit-learn.)
    n_best : int, default=1
        How many of the best structures to find, in ``result_.alternatives``, with a bound on all others.
    root_bound, root_only, reduce, merge, solver_options, output, trace, certificate, checkpoint, resume, log, \
interrupted
        How to search, and what to write; see `milpbn.solving.options.Options`.
    drop, features : collection of str or int, default=None
        Columns of X to leave out, and the only columns to use, by name or by position. By default all columns are
        features, except those of a data frame that look like identifiers, dates or free text.
    continuous, nominal : collection of str or int, default=None
        Features declared as continuous and as nominal, by name or by position. Of the others, floats are continuous,
        text, booleans and categoricals are nominal, and integers are nominal if they have at most 10 different values.
    missing : {"drop", "state", "error", "select"}, default="drop"
        What to do with missing values in training: drop the rows that have any (with a `milpbn.DataWarning`, and their
        number in ``n_dropped_``), give those of a feature a state of their own, refuse them, or let the recipe or
        `select` choose between the first two. Predictions take them, too, except with "error", and marginalise them
        unless they have a state.
    states : {"seen", "declared"}, default="seen"
        Whether the states of a pandas categorical are the values of the training rows, or all of its categories.
    absent_columns : {"error", "marginalise"}, default="error"
        What to do at prediction if a data frame lacks features: refuse it as scikit-learn does, or sum over their
        states, with a `milpbn.DataWarning`. Columns that training left out may always be absent.
    discretise : str, default="mdl"
        How continuous features are cut into intervals: ``mdl``, ``quantile:K``, ``uniform:K`` or ``kmeans:K``.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights by class label.
    random_state : int, RandomState or None, default=0
        Seed. With an int, one thread and no time limit, a fit can be repeated exactly.
    n_jobs : int or None, default=None
        Threads; None means 1, and -1 all cores.
    verbose : bool, default=False
        Whether to show a line for every change of incumbent or bound.

    Attributes
    ----------
    classes_ : array, shape (C,)
        Class labels, sorted, of the type of y.
    structure_ : dict of str to list of str
        Parents of every variable, the class included. Columns of arrays are called ``x0``, ``x1``, ..., and the class
        has the name of y, or is called ``class``.
    objective_ : float
        The score of the structure, in nats, under the generative parameters of the score.
    bound_ : float
        Upper bound on the score of every structure; NaN if there is none.
    gap_ : float
        ``bound_ - objective_`` in nats; ``result_.gap`` has the relative gaps.
    optimal_ : bool
        Whether the structure is proved best.
    stop_reason_ : str
        ``optimal``, or what stopped the search: ``time``, ``gap``, ``user``, ``node`` or ``memory``; ``feasible`` if a
        solver ended by itself within its tolerances.
    trace_ : float64 array, shape (T, 3)
        Seconds, incumbent and bound at every change; NaN where unknown.
    result_ : Result
        Everything that is known about the run; ``result_.save("result.json")`` writes it.
    classifier_ : Classifier or AveragedClassifier
        The model; `milpbn.network.save_classifier` writes it.
    n_dropped_ : int
        Number of training rows that were dropped because values are missing.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (N,)
        Names of the features, if X has column names that are all text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from milpbn.sklearn import MaxMarginBNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxMarginBNClassifier(p=0.9).fit(X, y)
    >>> model.optimal_, model.stop_reason_
    (True, 'optimal')
    """

    def __init__(
        self,
        *,
        objective: str = "sm",
        recipe: str | None = None,
        select: str | None = None,
        select_by: str | None = None,
        average: int = 1,
        p: float | str | None = None,
        gamma: float | None = None,
        max_parents: int | str = 2,
        class_parents: bool = True,
        smoothing: float = 1.0,
        smoothing_towards: str = "uniform",
        parent_sets: str = "auto",
        equivalent_sample_size: float = 1.0,
        penalty: float | str = 0.0,
        hybrid: float = 0.0,
        leave_one_out: bool = False,
        parameters: str | None = None,
        constraints: Constraints | None = None,
        subset: int | None = None,
        screen: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        gap_rel: float = 0.0,
        gap_abs: float = 0.0,
        backend: str = "auto",
        acyclicity: str = "order",
        start: Structure | None = None,
        heuristic_start: bool = True,
        root_bound: bool = True,
        root_only: bool = False,
        reduce: bool = True,
        merge: bool = True,
        n_best: int = 1,
        solver_options: Mapping[str, str] | None = None,
        output: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        log: str | os.PathLike[str] | None = None,
        interrupted: Callable[[], bool] | None = None,
        drop: Columns = None,
        features: Columns = None,
        continuous: Columns = None,
        nominal: Columns = None,
        missing: str = "drop",
        states: str = "seen",
        absent_columns: str = "error",
        discretise: str = "mdl",
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.objective = objective
        self.recipe = recipe
        self.select = select
        self.select_by = select_by
        self.average = average
        self.p = p
        self.gamma = gamma
        self.max_parents = max_parents
        self.class_parents = class_parents
        self.smoothing = smoothing
        self.smoothing_towards = smoothing_towards
        self.parent_sets = parent_sets
        self.equivalent_sample_size = equivalent_sample_size
        self.penalty = penalty
        self.hybrid = hybrid
        self.leave_one_out = leave_one_out
        self.parameters = parameters
        self.constraints = constraints
        self.subset = subset
        self.screen = screen
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.gap_rel = gap_rel
        self.gap_abs = gap_abs
        self.backend = backend
        self.acyclicity = acyclicity
        self.start = start
        self.heuristic_start = heuristic_start
        self.root_bound = root_bound
        self.root_only = root_only
        self.reduce = reduce
        self.merge = merge
        self.n_best = n_best
        self.solver_options = solver_options
        self.output = output
        self.trace = trace
        self.certificate = certificate
        self.checkpoint = checkpoint
        self.resume = resume
        self.log = log
        self.interrupted = interrupted
        self.drop = drop
        self.features = features
        self.continuous = continuous
        self.nominal = nominal
        self.missing = missing
        self.states = states
        self.absent_columns = absent_columns
        self.discretise = discretise
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxMarginBNClassifier:
        """Search for the best structure, and fit its parameters.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        y : array-like, shape (M,)
            Class labels of any type.
        sample_weight : array-like, shape (M,), optional
            Weights. A weight of 2 is the same as two rows, and a weight of 0 the same as none.

        Returns
        -------
        self : object
            The fitted classifier.

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
        unsaved: NotSavedError | None = None
        try:
            with interrupts.handled():
                result = self._search(table, task, began)
        except NotSavedError as error:
            unsaved, result = error, error.result
        self._set(self._attributes(result))
        if result.data.samples < table.n_rows:  # the recipe has dropped rows
            self.n_dropped_ += table.n_rows - result.data.samples
            warn(" ".join(dropped_notes(result.notes)), DataWarning)
        task.end()
        self._warn(result)
        if unsaved is not None:
            raise unsaved
        return self

    def _search(self, table: Table, task: FitTask, began: float) -> Result:
        """Return the result of the search, or of the smallest model if there is no time for a search."""
        score, choices = score_of(self), choices_of(self)
        options = options_of(self, task.hook(self._attributes))
        grid, own = choices.applied(score, options, given_to(self)) if choices else (None, options)
        if score.leave_one_out or (grid is not None and True in grid.others.get("leave-one-out", ())):
            table = table.in_units()
        data = table.dataset("train")
        common: dict[str, Any] = {"constraints": self.constraints, "started": began}
        narrowed: dict[str, Any] = {"subset": self.subset, "screen": self.screen}
        result = None
        # No search with a limit of 0, which `Options` would refuse; it has checked all others.
        if options.time_limit is not None or self.time_limit is None:
            try:
                if grid is not None:
                    result = maximise_selected(table, score, own, grid, **narrowed, **common)
                else:
                    asked = Question.of(
                        data, score, self.constraints, **narrowed, random_state=options.random_state
                    )
                    result = maximise(asked, options, started=began)
            except NoIncumbentError:
                result = None
        if result is not None and result.reason is Reason.INFEASIBLE:
            raise InputError("No structure obeys the constraints; relax one of them.")
        if result is None or result.structure is None:
            limit = None if result is None else result.limit
            result = smallest_model(data, score, options, **common, limit=limit or Limit.TIME)
        return result

    def _attributes(self, result: Result) -> dict[str, Any]:
        """Return the fitted attributes that belong to a result with a structure."""
        assert result.classifier is not None
        gap = result.gap.absolute
        stop = result.reason if result.limit is None else result.limit
        return {
            **self._fitted(result.classifier, result.structure),
            "objective_": _number(result.objective),
            "bound_": _number(result.bound),
            "gap_": _number(gap),
            "optimal_": result.optimal,
            "stop_reason_": str(stop),
            "trace_": np.array(result.trace, dtype=np.float64).reshape(-1, 3),
            "result_": result,
        }

    def _warn(self, result: Result) -> None:
        """Warn if no feature matters, and if the search ended before a proof and the gap that was asked for."""
        alone = result.structure is not None and not result.structure.markov_blanket
        if alone and result.limit is None and result.average is None:
            said = "No arc joins the class: every row gets the same class."
            warn(f"{said} Another objective, or a larger p, may use the features.", MilpbnWarning)
        searched = result.searched
        if searched.optimal or result.limit is Limit.GAP:
            return
        gap = result.searched.gap
        known = "no bound is known"
        if gap.absolute is not None:
            relative = gap.relative_to_bound
            share = "" if relative is None else f" ({100 * relative:.3g} % of the bound)"
            known = f"the gap is at most {gap.absolute:.6g} nats{share}"
        how = "ended within the solver's tolerances" if result.limit is None else result.limit.words
        warn(
            f"The search {how} before it proved the structure best; {known}. Allow more time with time_limit, or "
            "accept a gap with gap_rel or gap_abs.",
            ConvergenceWarning,
        )


def _number(value: float | None) -> float:
    """Return a number, NaN if it is unknown."""
    return math.nan if value is None else float(value)
