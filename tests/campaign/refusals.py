"""The cases that the documentation excludes: they must be refused with a sentence, and no others."""

from __future__ import annotations

from campaign.case import Case
from campaign.exact import Truth
from campaign.generator import DECOMPOSABLE, NATIVE, own_search
from campaign.space import breach, is_margin, sets_are_alike

#: Smoothing, gamma and hybrid in this range must be accepted with weights of 1e-9 to 1e9.
SMALLEST, LARGEST = 1e-6, 1e4
#: Least weight, and largest sum of weights, that must be accepted.
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e15


def backend_of(case: Case) -> str:
    """Return which backend runs, with ``auto`` resolved as documented."""
    name = case.options.get("backend", "auto")
    if name == "auto":
        own = case.score["name"] in DECOMPOSABLE and own_search(case.options)
        return "native" if case.score["name"] in NATIVE else "branch-and-cut" if own else "highs"
    return name


def ruled_out(case: Case, truth: Truth) -> str | None:
    """Return why a case must be refused, "" if it must not be refused, or None if the documentation does not say."""
    score, options, name = case.score, case.options, case.score["name"]
    backend = backend_of(case)
    margin = is_margin(case)
    reasons = {
        "gamma or p without margin": name not in ("sm", "sbm") and bool({"gamma", "p"} & set(score)),
        "gamma and p": {"gamma", "p"} <= set(score),
        "penalty of a generative score": not margin and bool(score.get("penalty") or score.get("hybrid")),
        "prior of a generative score": not margin and score.get("smoothing_towards", "uniform") != "uniform",
        "leave-one-out of such a score": score.get("leave_one_out", False) and not (margin or name == "ll"),
        "leave-one-out with its like": score.get("leave_one_out", False)
        and score.get("penalty") in ("bic", "aic"),
        "leave-one-out of small weights": score.get("leave_one_out", False)
        and any(case.trains(k) and w < 1 for k, w in enumerate(case.weights)),
        "native has no such score": backend == "native" and name not in NATIVE,
        "it is no MILP solver": backend in ("native", "branch-and-cut")
        and not (
            options.get("warm_start", True)
            and options.get("root_bound", True)
            and options.get("acyclicity", "order") == "order"
        ),
        "certificate of a solver": case.certificate and backend not in ("native", "branch-and-cut"),
        "subset of such a score": "subset" in options and name not in NATIVE,
        "subset smaller than the classes": options.get("subset", 10**9)
        < len({row[-1] for row in case.training.rows}),
        "one class": truth.scores.one_class,
        "no structure": not truth.values,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    extreme = [score.get("smoothing", 1.0), score.get("gamma", 1.0), score.get("hybrid") or 1.0]
    if not all(SMALLEST <= value <= LARGEST for value in extreme):
        return None
    weights = case.training.weights
    if weights and (min(weights) < LEAST_WEIGHT or sum(weights) > MOST_WEIGHT):
        return None
    if options.get("acyclicity") == "flow" or options.get("time_limit", 30) < 1:
        return None
    if case.start is not None and (breach(case, case.start) or not _is_candidate(case, truth)):
        return None
    return ""


def _is_candidate(case: Case, truth: Truth) -> bool:
    assert case.start is not None
    names = case.names
    graph = tuple(tuple(sorted(names.index(j) for j in case.start[name])) for name in names)
    return graph in truth.values or (sets_are_alike(case) and case.score["name"] != "aicc")
