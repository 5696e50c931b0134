"""Lists of the K best structures against the exact scores of all structures."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import milpbn
from campaign.case import Case
from campaign.checks import check, check_certificate, truth_of
from campaign.claims import OPTIMALITY, Failure, graph_of, same_score
from campaign.driver import write_inputs
from campaign.exact import NOTHING, Truth
from campaign.generator import NATIVE, draw
from campaign.share import Share
from campaign.space import Graph, breach, is_margin, sets_are_alike

#: Scores that branch and cut lists structures for.
LINEAR = ("ll", "mdl", "aic", "bdeu")
#: Seconds that a run may need beyond its time limit.
DELAY = 3.0


def draw_list(seed: int) -> Case:
    """Return a problem with a number of best structures, and with a certificate if there is one for its score."""
    rng = random.Random(f"list {seed}")
    aim = rng.choice(["all", "all", "weights", "constraints", "constraints", "extremes"])
    tries = (draw(seed * 1000 + k, aim) for k in range(1000))
    case = next(
        case
        for case in tries
        if (rng.random() < 0.3 and case.score["name"] in LINEAR)
        or (case.score["name"] in NATIVE and case.options.get("backend", "auto") in ("auto", "native"))
    )
    native = case.score["name"] in NATIVE
    left_out = (
        "subset",
        "acyclicity",
        "warm_start",
        "root_bound",
        *(() if native else ("backend", "time_limit")),
    )
    options = {k: v for k, v in case.options.items() if k not in left_out}
    if rng.random() < 0.1:
        options["time_limit"] = round(rng.uniform(0.01, 1.0), 3)
    if rng.random() < 0.1:
        options[rng.choice(["gap_abs", "gap_rel"])] = float(f"{10 ** rng.uniform(-7, 0):.2g}")
    options["n_best"] = rng.choice([2, 2, 3, 5, 8, 13, 20, 50, 200, 700])
    if rng.random() < 0.3:
        options["within"] = rng.choice([0, 1e-3, 0.1, 1, 3, 30])
    case = case.but(options=options, certificate=native, copies=[])  # without merging, copies take minutes
    return _at_the_edge(rng, case)


def _at_the_edge(rng: random.Random, case: Case) -> Case:
    """Make equal scores, scores near each other, loose bounds and crowded constraints frequent."""
    score, rules, names = dict(case.score), dict(case.constraints), case.names
    if score["name"] in ("sm", "sbm") and rng.random() < 0.3:
        score = {key: value for key, value in score.items() if key != "p"}
        score["gamma"] = float(f"{10 ** rng.uniform(-9, 2):.2g}")
    if score["name"] in NATIVE and rng.random() < 0.2:
        score["smoothing"] = float(f"{10 ** rng.uniform(-12, 6):.2g}")
    if rng.random() < 0.2:
        rules["max_children"] = {rng.choice([*names, "*", "*"]): rng.randint(0, 2)}
    case = case.but(score=score, constraints=rules, start=case.start if rng.random() < 0.2 else None)
    if len(names) > 2 and rng.random() < 0.2:  # a copy of a feature: many equal scores
        source, copy = rng.sample(range(len(names) - 1), 2)
        labels = [own if i != copy else case.labels[source] for i, own in enumerate(case.labels)]
        rows = [[row[source] if i == copy else code for i, code in enumerate(row)] for row in case.rows]
        copied = case.but(labels=labels, rows=rows)
        if len(copied.training.states[-1]) > 1:  # rows in which the copy is missing are dropped
            return copied
    return case


def as_searched(case: Case, result: Mapping[str, Any]) -> Case:
    """Return the case with what a search for a list forbids and allows (both documented).

    It forbids the arcs of features with one state, unless the constraints name such an arc. Under a penalty it has all
    parent sets of every feature, also of those with one state, whose sets score the same.
    """
    constant = {n for n, states in zip(case.names, case.training.states, strict=True) if len(states) == 1}
    arcs = [arc for arc in result["constraints"]["forbidden"] if constant & {*arc}]
    every = is_margin(case) and not sets_are_alike(case)
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
    bound, within = claim["bound"], claim["within"]
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
    asked_gap = {"gap_abs", "gap_rel"} & set(case.options)
    limit = result["status"]["limit"]
    if limit == "gap" and not asked_gap:
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


def _in_parts(case: Case, folder: Path, rng: random.Random) -> list[Failure]:
    """Search for a list in two parts, with a checkpoint between them, and check result and certificate."""
    table = milpbn.read_table(case.frame(), name="data", **case.reading())
    score, rules = milpbn.Score(**case.score), milpbn.Constraints.from_dict(case.constraints)
    options = {key: value for key, value in case.options.items() if key not in ("root_only", "time_limit")}
    files = {"checkpoint": folder / "state.npz", "certificate": folder / "proof.npz"}
    asked, enough = iter(range(10**9)), rng.choice([20, 100, 300, 1000])
    stops = (lambda: next(asked) > enough, lambda: False)
    found: list[Failure] = []
    for stop in stops:
        result = milpbn.solve(
            table, score, constraints=rules, **options, **files, output=folder / "result.json", verbose=False,
            interrupted=stop,
        )  # fmt: skip
        if result.alternatives is not None and result.alternatives.optimal:
            break
    values = result.to_dict()
    allowed = as_searched(case.but(options=options), values)
    found += check_list(allowed, truth_of(allowed.problem), values)
    if values["structure"] is not None:
        found += check_certificate(case, folder)
    return found


def test_lists_of_the_best_agree_with_enumeration(share: Share, tmp_path: Path) -> None:
    for seed in share.seeds():
        case = draw_list(seed)
        outcome, failures = check(case, tmp_path)
        path = tmp_path / "result.json"
        share.tally.tried["lists of the best"] += 1
        share.tally.outcomes[f"list: {outcome}"] += 1
        if path.exists() and outcome not in ("refused", "nothing"):
            result = json.loads(path.read_text(encoding="utf-8"))
            listed = (result["alternatives"] or {"structures": ()})["structures"]
            share.tally.tried["structures listed"] += len(listed)
            allowed = as_searched(case, result)
            failures = [*failures, *check_list(allowed, truth_of(allowed.problem), result)]
            if seed % 5 == 0 and case.certificate:
                share.tally.tried["lists in parts"] += 1
                rng = random.Random(f"parts {seed}")
                failures += _in_parts(case.but(start=None), Path(tempfile.mkdtemp(dir=tmp_path)), rng)
        for failure in failures:
            words = " ".join(map(str, write_inputs(case, tmp_path)))
            share.note(
                failure.kind, f"list of seed {seed}", f"{failure.text[:1500]}\n{words}\n{case.to_json()}"
            )
    share.finish()
