"""A small checker of certificates, independent of the ordinary verifier; it is slow, and short enough to be read.

It shares only the reader of the file, which unpacks arrays, with the rest of the project. Counts, weights and dual
weights are exact rational numbers, logarithms are intervals that are rounded outwards, and all other arithmetic has no
rounding. Numbers in parentheses are equations of Peharz and Pernkopf (2012). Read `arithmetic`, `problem` and `tree`
beside this module; there is nothing else. Scores without margins, sums of `local_terms`, have another kind of proof:
then read `multipliers` instead of `tree`.

What is proved. A structure gives every variable i one of its candidate parent sets, without a cycle; eta is the
indicator of these choices, (4)-(7). With the coefficients alpha_{m,c} of sample m and competing class c, (12), or the
single alpha_m of the binary margin, (23), the score is a sum over samples with weights w_m,

    sm, sbm   sum_m w_m min(gamma, min_c alpha_{m,c} @ eta)                                    (9), (13), (22)
    cll       sum_m w_m log P(c_m | z_m) = - sum_m w_m log(1 + sum_c exp(- alpha_{m,c} @ eta))

plus linear @ eta: hybrid times the log-likelihood, minus penalty times the free parameters, plus weights of arcs. With
leave_one_out, one unit of a sample's weight counts neither in its own coefficients nor in its own, then smoothed,
log-likelihood. Parameters are (n_{j|h} + a sp t) / (n_h + a sp), with t = 1 / sp or a parameter with fewer parents
(`theta`). For every lambda of the simplex, lambda_0 for gamma (under cll, for the true class, of value 0),

    min(gamma, min_c x_c) <= lambda_0 gamma + sum_c lambda_c x_c,
    - log(1 + sum_c exp(- x_c)) <= sum_c lambda_c x_c + sum_{c and 0} lambda_c log lambda_c,

because a minimum is at most any mean, and because the negative entropy is the conjugate of log-sum-exp (Boyd and
Vandenberghe 2004, example 3.25). With multipliers mu_r >= 0 of inequalities a_r @ eta >= b_r that every structure
obeys, no structure of a set scores more than

    b(lambda, mu) = constant + max over the set of gradient @ eta,
    constant      = sum_m w_m (lambda_{m,0} gamma or sum lambda_m log lambda_m) - mu @ b,
    gradient      = linear + sum_{m,c} w_m lambda_{m,c} alpha_{m,c} + sum_r mu_r a_r.

What a certificate holds. A binary tree of sets of structures; node 0 holds all. A branch (node, kind, a, b, inside,
outside) divides a node by a decision (`ExactTree.keeps`). A reduced-cost fixing removes parent sets from a node and its
descendants, because the node's structures with one of them score less than the incumbent. A node's fixings apply in the
order of the file, before its branch. A node without a branch is a leaf; the largest bound of a leaf, or the score of
its only structure, bounds all. Each fixing and each leaf has a point eta and a temperature T. They stand for dual
weights proportional to exp(- x / T), for x = gamma (cll: 0) and x = alpha_{m,c} @ eta; weights below exp(-REACH) of the
largest are 0. They are computed in floats, and then made exact. Parent sets are numbered by variable, the class last,
then as in `candidates`. If screening left parent sets out, the file lists the kept ones; only structures of these are
bounded then.

If a result lists the K best structures, fixings remove only what scores less than the last of them. The bound on all
others is the largest of a leaf that holds anything but one listed structure. Which of them are equivalent is not
checked here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from milpbn.certificate.exact.arithmetic import (
    ONE,
    Ends,
    Json,
    column,
    groups,
    known_form,
    need,
    number,
    require_features,
)
from milpbn.certificate.exact.multipliers import as_mask, prove_listed
from milpbn.certificate.exact.problem import DECOMPOSABLE, ExactProblem, Parents
from milpbn.certificate.exact.tree import ExactTree
from milpbn.certificate.format import arrays_on_all, load_proof

#: How far a score may be off, as shares of its size and of the weights; how far an optimum's bound, if not stated.
TOLERANCE, ROUNDING, OPTIMALITY = Fraction(1, 10**9), Fraction(1, 2**51), Fraction(1, 10**6)


def check(claim: Json | None, certificate: str | os.PathLike[str], data: Any) -> tuple[Ends, Fraction]:
    """Check a result's structure, score, bound, optimality and arcs of all optima, or raise NotProvedError.

    `claim` is the contents of a result.json; None checks the claims in the certificate's own header. `data` has the
    attributes `variables` (each with name, states and cuts; the class last), `codes` and `weights` of a `Dataset`.
    Returns (low, high) of the structure's score, and the proved bound: over the subset or the kept parent sets, if
    there are such. A bound over all rows beside that over a subset is checked as well.
    """
    header, arrays = load_proof(certificate)
    with known_form():
        return _check(header if claim is None else claim, header, arrays, data)


def _check(claim: Json, header: Json, arrays: Json, data: Any) -> tuple[Ends, Fraction]:
    subset, screened, listed = (claim.get(key) for key in ("subset", "screened", "alternatives"))
    if claim["score"]["name"] not in DECOMPOSABLE:
        require_features(len(data.variables) - 1)
    problem = ExactProblem(data, claim["score"], claim["constraints"], _kept(arrays) if screened else None)
    named = problem.about_all[listed is not None] or claim.get("among", "in old files") is not None
    need(named, "The claim does not name the class of structures that it is about.")
    described = json.dumps([[v.name, list(v.states), v.cuts] for v in data.variables])
    numbers = data.codes.astype("<i4").tobytes() + data.weights.astype("<f8").tobytes()
    found = {"sha256": hashlib.sha256(described.encode() + numbers).hexdigest(), "samples": len(data.codes)}
    classes = problem.n_states[-1] if data.has_class else 0
    features = problem.last + (not data.has_class)
    found |= {"unique_samples": len(problem.rows), "features": features, "classes": classes}
    need(found.items() <= claim["data"].items(), "The data differ from the data of the claim.")
    same = all(claim[key] == header[key] for key in ("score", "constraints", "run"))
    need(same, "Result and certificate differ in score, constraints or run.")
    same = all((claim.get(key) is None) == (header.get(key) is None) for key in ("subset", "screened"))
    need(same and None in (subset, screened), "Result and certificate differ in the subset or the kept sets.")
    reason, own = claim.get("status", {}).get("reason"), subset or screened or claim
    if own is not claim:
        silent = subset is not None or claim.get("bound") is None
        silent = silent and reason != "optimal" and not claim.get("proved")
        need(silent, "The optima over some rows or parent sets prove nothing about the optima over all.")
    if subset is not None:
        problem.weights = _subset(problem, arrays, subset["samples"])
    place = {v.name: i for i, v in enumerate(data.variables)}
    if screened is not None:
        counts = {name: sum(i == v for v, _ in problem.parent_sets) for name, i in place.items()}
        same = all(screened[key] == header["screened"][key] for key in ("k", "criterion", "ranked"))
        fits = same and screened["kept"] == counts and screened["total"] == problem.total
        need(fits and len(problem.parent_sets) < problem.total, "Other parent sets were kept than claimed.")
    structure = structure_of(problem, claim, place)
    parts = [(claim["objective"], problem.counts), (own["objective"], problem.weights)]
    for z, weights in parts if subset is not None else parts[:1]:
        low, high = problem.score(structure, weights)
        close = abs(number(z) - low) <= max(TOLERANCE, TOLERANCE * abs(low), ROUNDING * sum(weights))
        need(close, f"The structure scores {float(low)!r}, not {z!r} as claimed.")
    bound, objective = number(own["bound"]), number(own["objective"])
    limit = OPTIMALITY * max(Fraction(1), abs(objective), sum(problem.weights))
    limit = limit if claim.get("tolerance") is None else min(limit, number(claim["tolerance"]))
    as_said = bound - objective <= limit or not (reason == "optimal" or own.get("optimal"))
    if problem.decomposable:
        prove_terms(problem, claim, place, arrays, bound, limit)
        need(bound >= objective, "The claimed bound is below the score of the structure.")
        need(as_said, "The structure is not proved optimal.")
        return (low, high), bound
    newer = problem.score(structure_of(problem, header, place), problem.weights)  # for the fixings
    best, top = max(low, newer[0]), max(high, newer[1])
    tree = ExactTree(problem, arrays)
    proved, others = tree.prove(math.floor(best * ONE), *_listed(problem, listed, place))
    _check_others(listed, others, problem.bound_without_search, limit)
    proved = Fraction(max(top, proved if proved <= bound else min(proved, problem.bound_without_search())))
    need(proved <= bound, f"The claimed bound is {float(proved - bound):.3g} below the proved bound.")
    need(as_said, "The structure is not proved optimal.")
    if subset is not None and claim.get("bound") is not None:
        _prove_on_all(problem, structure, number(claim["bound"]), arrays)
    for key, undecided in tree.undecided.items():
        arcs = {(place[j], place[i]) for j, i in (claim.get("proved") or {}).get(key, ())}
        need(undecided.isdisjoint(arcs), f"An arc in the claim's list {key!r} is not proved.")
    return (low, high), proved


def prove_terms(
    problem: ExactProblem, claim: Json, place: Json, arrays: Json, bound: Fraction, limit: Fraction
) -> None:
    """Check the bound on a sum of terms, and the claim about the K best structures; `limit` is an optimum's gap."""
    need(claim.get("proved") is None, "The claim has arcs that such a certificate does not prove.")
    terms, listed = zip(problem.parent_sets, problem.linear, strict=True), claim.get("alternatives")
    sets = [(i, as_mask(s), term / ONE) for (i, s), term in terms]
    choices, others = _listed(problem, listed, place), _claimed_others(listed)
    own = [[problem.parent_sets[p][1] for p in sorted(one)] for one in choices[0]] if choices else None
    prove_listed(sets, problem.rules, arrays, bound, own, others)
    _check_others(listed, others, lambda: bound, limit)


def structure_of(problem: ExactProblem, claim: Json, place: Json) -> list[tuple[int, ...]]:
    """Return the structure of a claim, as the sorted parents of every variable."""
    need(set(claim["structure"]) == set(place), "The structure has other variables than the data.")
    structure = [tuple(sorted(place[j] for j in claim["structure"][name])) for name in place]
    need(problem.allows(structure), "The structure does not obey the options and constraints.")
    return structure


def _listed(problem: ExactProblem, of: Json | None, place: Json) -> tuple[Any, ...]:
    """Return the parent sets of the K best structures, and the grains below which structures may be left out."""
    if of is None:
        return ()
    number_of = {family: p for p, family in enumerate(problem.parent_sets)}
    found, scores = [], []
    for one in of["structures"]:
        structure = [tuple(sorted(place[j] for j in one["structure"][name])) for name in place]
        known = problem.allows(structure) and number_of.keys() >= {*enumerate(structure)}
        need(known, "A structure of the list does not obey the options and constraints.")
        z, (low, _) = one["objective"], problem.score(structure, problem.weights)
        close = abs(number(z) - low) <= max(TOLERANCE, TOLERANCE * abs(low), ROUNDING * sum(problem.weights))
        need(close, f"A structure of the list scores {float(low)!r}, not {z!r} as claimed.")
        found.append(frozenset(number_of[family] for family in enumerate(structure)))
        scores.append(math.floor(low * ONE))
    need(len(set(found)) == len(found) <= of["asked"], "The list has a structure twice, or too many.")
    least = _cutoff(of)
    # The claimed bound on all that is not listed is not below the cutoff.
    return set(found), -ONE * ONE if least is None else min([*scores, math.floor(least * ONE)])


def _cutoff(of: Json) -> Fraction | None:
    """Return the score below which structures do not belong into the list; None if it takes every structure."""
    scores, within = [one["objective"] for one in of["structures"]], of.get("within")
    if of["exhausted"] or (len(scores) < of["asked"] and within is None):
        return None
    return number(scores[-1] if len(scores) == of["asked"] else scores[0] - within)


def _claimed_others(of: Json | None) -> Fraction | float:
    """Return the claimed bound on the structures that are not listed: inf without one, -inf if there are none."""
    if of is None or (of["bound"] is None and not of["exhausted"]):
        return math.inf
    return -math.inf if of["exhausted"] else number(of["bound"])


def _check_others(
    of: Json | None, others: Fraction | float, without_search: Callable[[], Fraction], limit: Fraction
) -> None:
    """Check the claims about the structures that are not among the K best; `others` is the proved bound on them."""
    if of is None:
        return
    least, bound = _cutoff(of), of["bound"]
    need(bound is None or not of["exhausted"], "The list bounds structures that it says do not exist.")
    if of["exhausted"]:
        need(others == -math.inf, "There are structures that the list of all does not have.")
    elif bound is not None:
        most = number(bound)
        proved = others <= most or without_search() <= most
        need(proved, "The claimed bound on the structures that are not listed is not proved.")
        # Structures that score less than the cutoff were left out of the tree.
        need(least is None or least <= most, "The bound on other structures is below the list.")
    optimal = least is not None and bound is not None and number(bound) - least <= limit
    need(optimal or of["exhausted"] or not of["optimal"], "The list is not proved to be the best one.")


def _subset(problem: ExactProblem, arrays: Json, samples: int) -> list[Fraction]:
    """Return the weights of all rows in the subset; but for rounding, every class keeps its total weight."""
    chosen = dict(zip(arrays["subset_row"].tolist(), arrays["subset_weight"].tolist(), strict=True))
    found = [number(chosen.get(m, 0)) for m in range(len(problem.rows))]
    fits = sum(w > 0 for w in found) == len(chosen) == len(arrays["subset_row"]) == samples
    for c in range(problem.n_states[-1]):
        here = [m for m, row in enumerate(problem.rows) if row[-1] == c]
        part, whole = (sum((w[m] for m in here), Fraction(0)) for w in (found, problem.counts))
        fits = fits and abs(part - whole) <= TOLERANCE * max(Fraction(1), whole)
    need(fits, "The certificate's samples do not represent all rows of their classes.")
    return found


def _prove_on_all(problem: ExactProblem, structure: list[Parents], bound: Fraction, arrays: Json) -> None:
    """Check the bound over all rows that a claim about a subset states; its proof is a tree of its own."""
    problem.weights = problem.counts
    need(problem.score(structure, problem.weights)[1] <= bound, "The bound over all rows is below the score.")
    # The fixings remove structures that score less than the bound.
    proved = ExactTree(problem, arrays_on_all(arrays)).prove(math.floor(bound * ONE))[0]
    need(min(proved, problem.bound_without_search()) <= bound, "The bound over all rows is not proved.")


def _kept(arrays: Json) -> list[tuple[int, Parents]]:
    """Return the parent sets that screening kept, by variable."""
    members = groups(arrays, "kept_size", column(arrays, "kept_member", int))
    sets = [tuple(j for (j,) in own) for own in members]
    return list(zip(column(arrays, "kept_variable", int), sets, strict=True))
