"""The commands that repeat a run, as text for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Any

from milpbn.claims.reasons import BoundSource
from milpbn.claims.result import Result
from milpbn.data.request import DataRequest
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.record import ADDITIVE
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.engines.registry import OWN, automatic, engine_names
from milpbn.util.options import comma_separated, declared, quoted, spelling

#: The option of the command line for every constraint.
_CONSTRAINTS = {
    "required": "--require",
    "forbidden": "--forbid",
    "tiers": "--tiers",
    "max_children": "--max-children",
    "max_features": "--max-features",
    "fixed": "--fix",
    "allowed": "--allow",
    "arc_weights": "--arc-weight",
    "ancestors": "--ancestor",
    "no_ancestors": "--no-ancestor",
    "independences": "--independence",
}


def repeat_commands(result: Result, request: DataRequest | None = None) -> list[str]:
    """Return the command that repeats a run, and the one that verifies it if it writes a certificate.

    The training data are read as the request says, by default that of the result. Without either, the source is the
    data's name.
    """
    found = request or result.request or DataRequest(result.data.name)
    source = f"./{found.source}" if found.source.startswith("-") else found.source
    table = [source, *found.words]
    score = _score_words(result.score, omitted=("name", "p", *_chosen(result)))
    line = ["milpbn", "solve", *table, *score, *_constraint_words(result.constraints)]
    line += [*_search_words(result), "--output", "result.json"]
    lines = [line]
    if _has_certificate(result):
        line += ["--certificate", "proof.npz"]
        lines.append(["milpbn", "verify", "result.json", *table, "--certificate", "proof.npz"])
    return [shlex.join(words) for words in lines]


def _has_certificate(result: Result) -> bool:
    """Return whether the run can have a certificate: ``solve`` refuses one with other backends, scores and lists."""
    engine = OWN.get(result.backend.name.lower())
    if engine is None or not result.score.kind.certified or result.constraints.path_options:
        return False
    if result.alternatives is not None and not engine.capabilities.continues_root:
        return False
    return result.bound_source is BoundSource.CERTIFIED


def _chosen(result: Result) -> list[str]:
    """Return the options of the score that a recipe may have changed."""
    fit = result.parameters
    return ["max_parents"] if fit is not None and fit.additive is not None and fit.additive.wider else []


def _score_words(score: Score, omitted: Collection[str]) -> list[str]:
    """Return the score's name, and those of its options that are not the default; p is written as gamma."""
    plain, words = Score(name=score.name), ["--score", score.name]
    for item in declared(score):
        value = getattr(score, item.name)
        if item.name in omitted or value == getattr(plain, item.name):
            continue
        if isinstance(value, bool):
            words.append(spelling(item) if value else f"--no-{spelling(item)[2:]}")
        else:
            words += [spelling(item), f"{value!r}" if isinstance(value, float) else str(value)]
    return words


def _constraint_words(constraints: Constraints) -> list[str]:
    """Return the options of the constraints."""
    words = []
    for key, option in _CONSTRAINTS.items():
        values: Any = getattr(constraints, key)
        if key == "tiers":
            texts = [";".join(map(comma_separated, values))] if values else []
        elif key == "max_features":
            texts = [] if values is None else [str(values)]
        elif key == "max_children":
            texts = [f"{n}" if name == "*" else f"{quoted(name)}={n}" for name, n in values.items()]
        elif key == "arc_weights":
            texts = [f"{comma_separated(arc)}={weight!r}" for arc, weight in values.items()]
        elif key in ("fixed", "allowed"):
            texts = [f"{quoted(name)}={comma_separated(parents)}" for name, parents in values.items()]
        elif key == "independences":
            texts = [
                f"{comma_separated((a, b))}{'|' * bool(given)}{comma_separated(given)}"
                for a, b, given in values
            ]
        else:
            texts = [comma_separated(arc) for arc in values]
        for text in texts:
            words += [option, text]
    return words


def _search_words(result: Result) -> list[str]:
    """Return the options of the search that the result keeps."""
    backend, words = result.backend, []
    known = {name.lower() for name in engine_names()}  # a solution that was imported has another backend
    if backend.name.lower() in known and backend.name != automatic("auto", result.score):
        words += ["--backend", backend.name]
    if backend.threads is not None:
        words += ["--threads", str(backend.threads)]
    words += ["--seed", str(result.seed)]
    if result.limit is not None:  # a run that ended by itself needs no limit, and with one might not end
        words += ["--time-limit", f"{max(1.0, result.seconds.total):.0f}"]
    if result.subset is not None:
        words += ["--subset", str(result.subset.samples)]
    if result.screened is not None:
        words += ["--screen", str(result.screened.k)]
    if result.alternatives is not None:
        words += ["--n-best", str(result.alternatives.asked)]
        if result.alternatives.within is not None:
            words += ["--within", repr(result.alternatives.within)]
    fit = result.parameters
    if fit is not None and (monotone := fit.constraints):
        words += ["--monotone", ",".join(f"{quoted(one.column)}={quoted(one.word)}" for one in monotone)]
        if len(monotone[0].classes) == 2:
            words += ["--positive", monotone[0].classes[-1]]
    if fit is not None and fit.method == ADDITIVE:
        words += ["--recipe", "accurate"]
    elif fit is not None and fit.method != "ml":
        given = fit.folds is None and fit.kappa is not None
        method = (
            ParameterMethod(fit.method, fit.kappa, fit.strength) if given else ParameterMethod(fit.method)
        )
        words += ["--parameters", str(method)]
    return words
