"""Whether what a result says of the best structures is true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from campaign.case import Case
from campaign.claims import OPTIMALITY, Failure, graph_of, same_score
from campaign.exact import NOTHING, Truth
from campaign.space import Graph, breach, is_margin, sets_are_alike

#: Seconds that a run may need beyond its time limit.
DELAY = 3.0


def as_searched(case: Case, result: Mapping[str, Any]) -> Case:
    """Return the case with what a search for a list forbids and allows (both documented).

    It forbids the arcs of features with one state, unless the constraints name such an arc. Under a penalty it has all
    parent sets of every feature, also of those with one state, whose sets score the same.
    """
    every = is_margin(case) and not sets_are_alike(case)
    constant = {n for n, states in zip(case.names, case.training.states, strict=True) if len(states) == 1}
    if not constant and not every:
        return case
    arcs = [arc for arc in result["constraints"]["forbidden"] if constant & {*arc}]
    score = {"parent_sets": "all", **case.score} if every else case.score
    forbidden = [*case.constraints.get("forbidden", []), *arcs]
    return case.but(score=score, constraints={**case.constraints, "forbidden": forbidden})


def _ranked(truth: Truth, listed: set[Graph]) -> tuple[list[Fraction], Fraction | None]:
    """Return all scores, best first, and the best one of a structure that is not listed."""
    others = [value for graph, value in truth.values.items() if graph not in listed]
    return sorted(truth.values.values(), reverse=True), max(others, default=None)


def check_list(case: Case, truth: Truth, result: Mapping[str, Any]) -> Iterator[Failure]:
    """Check all that a result says of the K best structures."""
    claim = result["alternatives"]
    if claim is None:
        if result["structure"] is not None:
            yield Failure("no list", result["status"]["reason"])
        return
    scores = [one["objective"] for one in claim["structures"]]
    first = claim["structures"][0]
    if first["objective"] != result["objective"] or first["structure"] != result["structure"]:
        yield Failure("the result is not the first of its list", f"{result['objective']!r}, {first}")
    if any(b > a for a, b in pairwise(scores)):
        yield Failure("not best first", f"{scores}")
    graphs = [graph_of(case, one["structure"]) for one in claim["structures"]]
    if len(set(graphs)) < len(graphs) or len(graphs) > claim["asked"]:
        yield Failure("twice, or too many", f"{graphs}")
    for one, graph in zip(claim["structures"], graphs, strict=True):
        if breach(case, one["structure"]) or graph not in truth.values:
            yield Failure("listed structure is not allowed", f"{one}")
        elif not same_score(truth, one["objective"], float(truth.values[graph])):
            yield Failure("wrong score in the list", f"{one}, exactly {float(truth.values[graph])!r}")
    ranked, best_other = _ranked(truth, set(graphs))
    bound, within = claim["bound"], claim.get("within")  # which files of earlier versions lack
    wanted = [value for value in ranked if within is None or float(ranked[0] - value) <= within]
    # A list of exactly all structures need not say that there are no others.
    if (claim["exhausted"] and best_other is not None) or (
        claim["optimal"] and not claim["exhausted"] and within is None and len(ranked) < claim["asked"]
    ):
        yield Failure("wrong about all", f"{claim['exhausted']} with {len(graphs)} of {len(ranked)}")
    if bound is not None and best_other is not None:
        if best_other - Fraction(bound) > NOTHING:
            yield Failure("bound on others too low", f"{bound!r}, there is {float(best_other)!r}")
        if bound > result["bound"]:
            yield Failure("bound on others above that on all", f"{bound!r} {result['bound']!r}")
    last = scores[-1] if within is None or len(scores) == claim["asked"] else scores[0] - within
    allowance = OPTIMALITY * max(1.0, abs(last))
    if claim["optimal"]:
        if len(graphs) < min(claim["asked"], len(wanted)):
            yield Failure("called proved and is too short", f"{len(graphs)} of {len(wanted)}")
        elif best_other is not None and float(best_other) - last > allowance * (1 + 1e-9):
            yield Failure("called proved and is not", f"last {last!r}, another {float(best_other)!r}")
    asked_gap = {"gap_abs", "gap_rel", "gap_se"} & set(case.options)
    limit = result["status"]["limit"]
    if limit in ("gap", "gap-se") and not asked_gap:
        yield Failure(
            "stopped by a gap that nobody asked for", f"{result['objective']!r} {result['bound']!r}"
        )
    if limit == "time" and "time_limit" not in case.options:
        yield Failure("stopped by a time that nobody asked for", "")
    stopped = asked_gap or {"root_only", "time_limit"} & set(case.options)
    if not claim["optimal"] and not stopped:
        yield Failure("ended without proof", f"{scores[-1]!r}, {bound!r}, {result['status']}")
    if "time_limit" in case.options and result["seconds"]["total"] > case.options["time_limit"] + DELAY:
        yield Failure("too late", f"{result['seconds']['total']} s of {case.options['time_limit']}")
    for group in claim["same_posteriors"], claim["markov_equivalent"]:
        if any(not 1 <= n <= len(graphs) for one in group for n in one):
            yield Failure("wrong group", f"{group}")
    if result["status"]["reason"] != "running":
        yield from _check_markov(graphs, claim["markov_equivalent"])


def _check_markov(graphs: list[Graph], claimed: list[list[int]]) -> Iterator[Failure]:
    """Check the groups of the same edges and v-structures."""
    found: dict[Any, list[int]] = {}
    for number, graph in enumerate(graphs, start=1):
        edges = {frozenset((i, j)) for i, parents in enumerate(graph) for j in parents}
        joins = {
            (frozenset(pair), i)
            for i, parents in enumerate(graph)
            for pair in combinations(parents, 2)
            if frozenset(pair) not in edges
        }
        found.setdefault((frozenset(edges), frozenset(joins)), []).append(number)
    expected = [group for group in found.values() if len(group) > 1]
    if sorted(expected) != sorted(claimed):
        yield Failure("wrong Markov equivalence", f"{claimed}, not {expected}")
