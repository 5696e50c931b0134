"""The recipe ``accurate``: a structure with a bound on coarse cuts, and tables on finer cuts that folds choose.

First folds of the training rows choose cuts, where the interactions come from, and penalties
(`milpbn.network.additive.learning`). Then a search over structures on the chosen coarse cuts bounds the score of every
structure. Last the tables of the chosen structure are fitted on finer cuts. If it is not the search's own structure,
but has the interactions of the largest gains on residuals, the result has its score beside the search's bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from milpbn.claims.reasons import Reason
from milpbn.claims.result import NotSavedError, Result
from milpbn.data import Dataset, Table, read_table
from milpbn.data.dataset import require_class
from milpbn.data.relevance import most_features
from milpbn.errors import InputError, MilpbnError, NoIncumbentError
from milpbn.heuristics.spanning import tan_structure
from milpbn.network.additive.choice import OutOfTime, Sources
from milpbn.network.additive.interactions import Block, Room
from milpbn.network.additive.learning import (
    Chosen,
    choose_model,
    fitted,
    training_data,
    training_rows,
)
from milpbn.network.additive.tables import interactions_of
from milpbn.network.classifier import rows_by_state
from milpbn.network.cpt import Cpt
from milpbn.network.monotone.check import MonotoneFit
from milpbn.network.monotone.constraints import MonotoneConstraint
from milpbn.network.parameters.monotone_fit import checked, made_monotone
from milpbn.network.parameters.record import ADDITIVE, ParameterFit
from milpbn.network.structure import Structure
from milpbn.problem.candidates import count_candidates
from milpbn.problem.class_free import adapted
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.rescore import rescored, standard_error
from milpbn.problem.scores.options import PAPER
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise
from milpbn.solving.files import saved
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.question import Question
from milpbn.solving.report import fit_classifier
from milpbn.solving.smallest import unsearched
from milpbn.util import interrupts, stages
from milpbn.util.budget import Budget, Limit
from milpbn.util.memory import limited
from milpbn.util.threads import library_threads

#: Seconds of everything without a time limit, and those below `SMALL_ROWS` rows of fewer than `SMALL_FEATURES`.
SECONDS, SMALL_SECONDS = 600.0, 120.0
SMALL_ROWS, SMALL_FEATURES = 2000, 30
#: Shares of the time left: of all for the choice, then for finding the interactions again in all rows, then for the
#: search; what is left is for the fit to all rows.
CHOICE_SHARE, SOURCE_SHARE, SEARCH_SHARE = 0.6, 0.25, 0.5
#: Seconds of an exact search in a fold, at most.
FOLD_SECONDS = 6.0
#: Parents of a feature, the class included, that interactions beyond a forest may have in every table.
LEAST_ROOM = 3
#: Limits of the search: candidate parent sets; candidate parent sets times rows; and these per second of its time.
MOST_SETS, MOST_WORK, WORK_PER_SECOND = 100_000, 1e8, 2e5
#: Seconds of the search after the user has stopped the choice. Least seconds of a search that may go beyond the time
#: limit; the next number is tried as long as there is no structure, neither of the search nor of the folds.
INTERRUPTED_SECONDS, SEARCH_SECONDS = 0.5, (0.5, 2.0, 8.0, 32.0)


def score_of_recipe(score: Score, given: Collection[str]) -> Score:
    """Return the score with the recipe's options where the user has given none."""
    own: dict[str, Any] = {"parent_sets": PAPER}
    if not {"name", "p", "gamma"}.intersection(given):  # another score has other options
        own |= {"name": "cll", "gamma": None, "p": None, "leave_one_out": True, "max_parents": 2}
    return replace(
        score, **{key: value for key, value in own.items() if key not in given}, class_parents=False
    )


def maximise_accurate(
    question: Question,
    options: Options,
    *,
    cuts: str | None = None,
    wider: bool = True,
    started: float | None = None,
) -> Result:
    """Return the structure on coarse cuts with its bound, and as its classifier the network with finer tables.

    The question has the score of `score_of_recipe`. Of a table, continuous columns get finer cuts as well; `cuts` says
    how they are cut, as in ``--discretise``, by default what folds choose. With `wider`, features may have more parents
    than the score's if held-out rows prefer it. The time limit counts from `started`, a `time.monotonic` value.

    Raises
    ------
    InputError
        If an option does not go with the recipe, or the data have no class.
    NotSavedError
        If a file could not be written; its attribute ``result`` is the result.
    """
    return _Recipe(question, options, cuts, wider, started).result()


def widest(score: Score, n_features: int, n_rows: int, seconds: float) -> int:
    """Return the most parents with which a search has few enough candidate sets; at least the score's own."""
    most, work = score.max_parents, min(MOST_WORK, WORK_PER_SECOND * seconds)
    while most < n_features:
        sets = count_candidates(n_features, replace(score, max_parents=most + 1))
        if sets > MOST_SETS or sets * n_rows > work:
            break
        most += 1
    return most


class _Recipe:
    """One run of the recipe."""

    def __init__(
        self, question: Question, options: Options, cuts: str | None, wider: bool, started: float | None
    ) -> None:
        for name, value in (("checkpoint", options.checkpoint), ("parameters", options.parameters)):
            if value is not None:
                raise InputError(
                    f"The recipe accurate fits tables of its own after a choice by folds; leave out --{name} ({name}), "
                    "or take --recipe readable."
                )
        source = question.data
        if not isinstance(source, Dataset | Table):
            source = read_table(source, missing="state")
        require_class(source, "The recipe accurate")
        rows = len(training_rows(source))
        features = source.n_features if isinstance(source, Dataset) else len(source.features)
        if isinstance(source, Table):
            features = min(features, most_features(rows))
            source = source.in_units() if question.score.needs_units else source
        seconds = options.time_limit
        if seconds is None:
            seconds = SMALL_SECONDS if rows < SMALL_ROWS and features < SMALL_FEATURES else SECONDS
        self.source, self.cuts = source, cuts
        self.question, self.options = question, options
        self.constraints, self.wider = question.constraints or Constraints(), wider
        # A start, and monotone wishes without names, are about all features.
        asked = options.monotone
        every = options.start is not None or not isinstance(asked, Mapping | None)
        wished = asked if isinstance(asked, Mapping) else ()
        names = set(source.features) if isinstance(source, Table) else set()
        self.kept = names if every else names & {*self.constraints.names, *wished}
        most = question.score.max_parents
        if wider:
            most = max(widest(question.score, features, rows, seconds), min(LEAST_ROOM, features))
        self.sources = Sources(self._exact, tan_structure, Room(most))
        self.interrupted, self.searched = False, True
        self.budget = Budget(seconds, began=started, cancelled=options.interrupted)

    def result(self) -> Result:
        """Choose, search, fit, and save."""
        shows = wants_progress(self.options.verbose)
        with stages.shown(self.budget.began, wanted=shows):
            self.options.decision(self.source)  # refuses costs of other classes
            self.options.monotone_constraints(self.source)
            stages.enter("choice of cuts and penalties by folds")
            chosen = self._choose()
            before = time.monotonic() - self.budget.began
            cuts = chosen.setup.cuts if isinstance(chosen, Chosen) else self.cuts or ""
            coarse, fine = training_data(self.source, cuts, self.kept)
            preferred = self._preferred(chosen, fine)
            found, failures = self._bounded(coarse, preferred and preferred[1])
            if found.structure is None:
                return found
            stages.enter("fit of the tables on finer cuts")
            result = self.with_tables(found, preferred, chosen, coarse, fine, before)
        return saved(result, self.options, failures)

    def _choose(self) -> Chosen | str:
        """Return what folds choose, or why they do not."""
        part = self.budget.share(CHOICE_SHARE)
        with interrupts.deferred(), limited(self.options.memory_limit), library_threads(1):
            try:
                chosen: Chosen | str = choose_model(
                    self.source,
                    sources=self.sources,
                    budget=part,
                    cuts=self.cuts,
                    kept=self.kept,
                    random_state=self.options.random_state,
                    report=stages.tell,
                )
            except MemoryError:
                chosen = "The memory did not suffice for the folds that choose the tables"
            self.interrupted = part.stop() is Limit.USER
        return chosen

    def _preferred(self, chosen: Chosen | str, fine: Dataset) -> tuple[list[Block], Structure] | None:
        """Return the interactions that folds prefer to those of the search, and a structure, if constraints allow it.

        Features may then have as many parents as it needs.
        """
        if isinstance(chosen, str) or chosen.setup.structure == "exact":
            return None
        part = self.budget.share(SOURCE_SHARE)
        with interrupts.deferred(), limited(self.options.memory_limit), library_threads(1):
            try:
                found = chosen.interactions(fine, part)
            except MemoryError:
                return None
            self.interrupted |= part.stop() is Limit.USER
        score, needed = self.question.score, max(map(len, found[1].parents))
        most = widest(score, len(found[1].names) - 1, fine.n_samples, math.inf)
        score = replace(score, max_parents=max(score.max_parents, needed))
        if objection(found[1], score, self.constraints):
            return None
        self.searched = needed <= most
        self.question = replace(self.question, score=score)
        return found

    def _exact(self, data: Dataset, budget: Budget) -> Structure | None:
        """Return the best structure that a short search finds on the training rows of a fold."""
        seconds = min(FOLD_SECONDS, budget.left())
        others = ("monotone", "start", "output", "certificate", "trace", "log", "on_change")
        unset: dict[str, Any] = dict.fromkeys(others)
        quiet = replace(self.options, time_limit=seconds, verbose=False, **unset)
        try:
            return maximise(replace(self.question, data=data), quiet).structure
        except MilpbnError:
            return None

    def _bounded(self, coarse: Dataset, preferred: Structure | None) -> tuple[Result, list[str]]:
        """Return a structure with a bound, by a search if there is time for one; and what `_search` returns with it."""
        attempts = SEARCH_SECONDS if preferred is None else SEARCH_SECONDS[:1]
        for seconds in attempts if self.searched else ():
            final = preferred is None and seconds == attempts[-1]
            try:
                found, failures = self._search(coarse, preferred, seconds)
            except NoIncumbentError:
                # There is no time for the coefficients of so many parent sets.
                if final:
                    raise
            else:
                if final or found.structure is not None or found.limit is not Limit.TIME:
                    return found, failures
        assert preferred is not None
        return self._unsearched(coarse, preferred), []

    def _search(self, coarse: Dataset, preferred: Structure | None, least: float) -> tuple[Result, list[str]]:
        """Return the result of a search of at least so many seconds, and sentences about unwritten files."""
        began = self.budget.began
        limit = time.monotonic() - began + max(least, SEARCH_SHARE * self.budget.left())
        if self.interrupted:
            began, limit = time.monotonic(), max(least, INTERRUPTED_SECONDS)
        start = self.options.start or preferred
        options = replace(self.options, time_limit=limit, start=start, monotone=None)
        try:
            return maximise(replace(self.question, data=coarse), options, started=began), []
        except NotSavedError as error:
            return error.result, [str(error)]

    def _unsearched(self, coarse: Dataset, structure: Structure) -> Result:
        """Return the folds' structure with a bound that needs no search."""
        asked, began = self.question, self.budget.began
        score, constraints = adapted(coarse, asked.score, self.constraints)
        self.searched = False
        return unsearched(coarse, score, self.options, structure, constraints, began, Limit.TIME)

    def _of_preferred(self, found: Result, coarse: Dataset, preferred: Structure) -> Result:
        """Return the result with another structure in the place of the search's, under the search's bound."""
        if preferred == found.structure:
            return found
        objective, error = rescored(coarse.merged, preferred, found.score, found.constraints)
        proved = found.proves(objective, found.bound, error)
        last = found.trace[-1][0] if found.trace else found.seconds.total
        return replace(
            found,
            structure=preferred,
            objective=objective,
            standard_error=standard_error(coarse, preferred, found.score),
            reason=Reason.OPTIMAL if proved else Reason.FEASIBLE,
            limit=None if proved else found.limit,
            trace=((last, objective, found.bound),),
            alternatives=None,
        )

    def with_tables(
        self,
        found: Result,
        preferred: tuple[list[Block], Structure] | None,
        chosen: Chosen | str,
        coarse: Dataset,
        fine: Dataset,
        before: float,
    ) -> Result:
        """Return the result with the chosen tables, or the search's with those of its score and the reason.

        `preferred` are the interactions that folds prefer to those of the search, with a structure; `before` are the
        seconds of the choice.
        """
        began = time.monotonic()
        result = found if preferred is None else self._of_preferred(found, coarse, preferred[1])
        structure = result.structure
        assert structure is not None
        made: tuple[Structure, tuple[Cpt, ...], MonotoneFit | None] | str
        monotone = self.options.monotone_constraints(fine)
        if isinstance(chosen, str):  # why the network keeps the parameters of its score
            made = chosen
        elif clause := self._objection(structure):
            made = f"With an arc from the class to every feature the structure breaks a constraint: {clause}"
        else:
            blocks = interactions_of(structure) if preferred is None else preferred[0]
            made = self._fitted(chosen, fine, blocks, structure, monotone)
        if isinstance(made, str):
            result = found  # without tables, folds have no reason to prefer another
            record = ParameterFit(method=ADDITIVE, note=f"{made}; the generative parameters are kept.")
        else:
            assert isinstance(chosen, Chosen)
            record = self._record(found, result, chosen, made[0])
        classifier = fit_classifier(coarse, result, self.options)
        assert classifier is not None
        if not isinstance(made, str):
            about = {**classifier.provenance["data"], "rows_by_state": rows_by_state(fine)}
            provenance = {**classifier.provenance, "data": about}
            classifier = replace(
                classifier, variables=fine.variables, structure=made[0], cpts=made[1], provenance=provenance
            )
            record = checked(classifier, monotone, replace(record, monotone=made[2])) if monotone else record
        elif monotone:
            classifier, record = made_monotone(classifier, monotone, record)
        seconds = time.monotonic() - began
        record = replace(record, seconds=before + seconds)
        provenance = {**classifier.provenance, "parameters": record.to_dict()}
        s = result.seconds
        return replace(
            result,
            classifier=replace(classifier, provenance=provenance),
            parameters=record,
            seconds=replace(s, total=s.total + seconds, parameters=seconds),
        )

    def _record(self, found: Result, result: Result, chosen: Chosen, network: Structure) -> ParameterFit:
        """Return the record of the tables of a network, for the result that has its structure."""
        assert result.structure is not None
        names = {*result.structure.names}
        known = {(p, c) for c, own in result.structure.to_mapping().items() for p in own}
        arcs = ((network.names[j], network.names[i]) for j, i in network.arcs)
        note = ""
        if result.structure != found.structure:
            compared = chosen.record.choice.log_loss is not None
            note = (
                "held-out rows prefer this structure to"
                if compared
                else "this is the first candidate's structure, not"
            )
            note += f" the one of the highest score that the search found, {found.objective:.6f}"
        if not self.searched:
            note = "there was no time to search so many structures, and the bound is one that needs no search"
        return ParameterFit(
            method=ADDITIVE,
            fitted=True,
            kappa=chosen.setup.penalty.kappa,
            added_arcs=tuple(arc for arc in arcs if {*arc} <= names and arc not in known),
            additive=replace(chosen.record, wider=self.wider),
            note=note,
        )

    def _fitted(
        self,
        chosen: Chosen,
        fine: Dataset,
        blocks: Sequence[Block],
        structure: Structure,
        monotone: Sequence[MonotoneConstraint],
    ) -> tuple[Structure, tuple[Cpt, ...], MonotoneFit | None] | str:
        """Return the network with its tables and what monotone features cost, or why there are none, as a clause."""
        with library_threads(1):
            try:
                return fitted(chosen, fine, blocks, structure, self.budget, monotone)
            except OutOfTime:
                return "The fit of the tables was stopped"
            except MemoryError:
                return "The memory did not suffice for the fit of the tables"

    def _objection(self, structure: Structure) -> str | None:
        """Return how the structure breaks a constraint with the class as a parent of every feature; else None."""
        target = len(structure.names) - 1
        parents = (*({*own, target} for own in structure.parents[:-1]), ())
        whole = Structure(structure.names, tuple(tuple(own) for own in parents))
        free = replace(self.question.score, max_parents=len(structure.names))
        return objection(whole, free, self.constraints, any_class_free=True)
