"""Parent sets without the class that differ in score: optimum, bound, list and words against all allowed structures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import oracle
from running import predicate, random_constraints, random_data

import milpbn
from campaign.share import Share
from milpbn.certificate.verify.check import verify
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.appraisal import suboptimality
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.report.claims import headline, meaning_of_gap
from milpbn.solving.progress import closing_block

Graph = tuple[tuple[int, ...], ...]
#: Relative difference up to which two scores are the same.
SAME = 1e-7


class Problem(NamedTuple):
    """A drawn problem, and every structure that its limits and constraints allow, with its score."""

    data: Dataset
    score: milpbn.Score
    constraints: Constraints
    values: dict[Graph, float]

    @property
    def last(self) -> int:
        return self.data.n_variables - 1

    @property
    def alike(self) -> bool:
        """Whether the score is made of margins alone, which are the same under all sets without the class."""
        score = self.score
        return score.name in oracle.MARGIN_SCORES and not (
            score.hybrid or score.penalty or self.constraints.arc_weights
        )

    @property
    def restricted(self) -> bool:
        """Whether claims may only be about a class of structures, by the documentation."""
        asked = self.score.parent_sets
        generative = self.score.name not in oracle.MARGIN_SCORES
        return not self.alike and (asked == "paper" or (asked == "auto" and generative))

    @property
    def inside(self) -> dict[Graph, float]:
        """The structures in which the features without the class have as few parents as constraints allow."""
        free: dict[int, list[set[int]]] = {}
        for graph in self.values:
            for i, parents in enumerate(graph):
                if i != self.last and self.last not in parents:
                    free.setdefault(i, []).append(set(parents))

        def smallest(i: int, parents: tuple[int, ...]) -> bool:
            return i == self.last or self.last in parents or not any(s < {*parents} for s in free[i])

        return {g: v for g, v in self.values.items() if all(smallest(i, s) for i, s in enumerate(g))}


def draw(rng: np.random.Generator) -> Problem:
    """Return a small problem: the recipe's score or another one with terms of single families, some with rules."""
    while True:
        data = random_data(
            rng.integers(2**31), n_features=int(rng.integers(2, 4)), n_classes=2, max_states=3, n_samples=14
        )
        options: dict[str, Any] = {
            "name": str(rng.choice(["cll", "sm", "sbm", "cll", "hard-margin", "mdl", "ll"]))
        }
        options |= {"max_parents": int(rng.integers(1, 4)), "class_parents": bool(rng.random() < 0.7)}
        if options["name"] in ("sm", "sbm"):
            options["p"] = 0.9
        if options["name"] in oracle.MARGIN_SCORES:
            kind = rng.random()
            options |= {"hybrid": float(rng.choice([0.1, 1.0]))} if kind < 0.6 else {}
            options |= {"penalty": float(rng.choice([1e-3, 0.5]))} if 0.4 < kind < 0.9 else {}
            options |= {"leave_one_out": bool(rng.random() < 0.6)}
        options["parent_sets"] = str(rng.choice(["auto", "auto", "paper", "all"]))
        score = milpbn.Score(**options)
        drawn = data.n_features == 3 and rng.random() < 0.6
        rules = random_constraints(rng, data.names, 0.2) if drawn else Constraints()
        values = dict(score_all(data, score, rules))
        if values:
            return Problem(data, score, rules, values)


def score_all(data: Dataset, score: milpbn.Score, rules: Constraints) -> Iterator[tuple[Graph, float]]:
    """Yield every acyclic graph within the limits and constraints, with its score by the definition."""
    V = data.n_variables
    sets = []
    for i in range(V):
        most = score.max_parents if i < V - 1 or score.class_parents else 0
        others = [j for j in range(V) if j != i]
        sets.append(tuple(s for k in range(min(most, V - 1) + 1) for s in combinations(others, k)))
    obeys = predicate(data.names, rules)
    weights = {(data.names.index(a), data.names.index(b)): w for (a, b), w in rules.arc_weights.items()}
    for graph in oracle.acyclic_structures(tuple(sets)):
        if obeys(graph):
            value = oracle.score_structure(
                data,
                graph,
                score.name,
                gamma=score.gamma,
                penalty=float(score.penalty),
                hybrid=score.hybrid,
                leave_one_out=score.leave_one_out,
            )
            yield graph, value + sum(weights.get((j, i), 0.0) for i, s in enumerate(graph) for j in s)


def same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(1.0, abs(a), abs(b))


def failures(problem: Problem, rng: np.random.Generator, folder: Path) -> Iterator[tuple[str, str]]:
    """Solve the problem, and yield what is wrong with the result."""
    data, score, rules, values = problem
    native = score.name in ("cll", "sm", "sbm")
    backend = "native" if native and rng.random() < 0.8 else "highs"
    certificate = folder / "proof.npz" if backend == "native" else None
    listed = int(rng.integers(2, 8)) if backend == "native" and rng.random() < 0.4 else 1
    options = {
        "backend": backend,
        "n_best": listed,
        "certificate": certificate,
        "threads": 1,
        "verbose": False,
    }
    graphs = list(values)
    if rng.random() < 0.4:
        graph = graphs[rng.integers(len(graphs))]
        options["start"] = Structure(data.names, graph)
    covered = problem.inside if problem.restricted else values
    try:
        result = milpbn.solve(data, score, constraints=rules, **options)
    except InputError as refusal:
        outside = "start" in options and options["start"].parents not in covered
        if not (outside and "--parent-sets all" in str(refusal)):
            yield "refused", str(refusal)
        return
    best = max(covered.values())
    if not result.optimal or not same(result.objective, best):
        yield "wrong optimum", f"{result.reason} {result.objective!r}, the optimum is {best!r}"
    if not same(values.get(result.structure.parents, np.nan), result.objective):
        yield "wrong structure", f"{result.structure.parents} with {result.objective!r}"
    if result.bound < best - SAME * max(1.0, abs(best)):
        yield "bound below the optimum", f"{result.bound!r}, the optimum is {best!r}"
    yield from wrong_words(problem, result)
    yield from wrong_distances(problem, result)
    if result.alternatives is not None:
        among = problem.inside if problem.restricted or problem.alike else values
        expected = sorted(among.values(), reverse=True)[:listed]
        found = [one.objective for one in result.alternatives.structures]
        fits = len(found) == len(expected) and all(map(same, found, expected))
        if result.alternatives.optimal and not fits:
            yield "wrong list", f"{found}, the best are {expected}"
    if certificate is not None:
        try:
            proved = verify(result, certificate, data)
        except InputError as refusal:
            yield "refused by the verifier", str(refusal)
        else:
            if bool(proved.among) != problem.restricted:
                yield "verifier about the wrong structures", repr(proved.among)


def wrong_words(problem: Problem, result: milpbn.Result) -> Iterator[tuple[str, str]]:
    """Yield every text that claims something of all structures, or of a class only, and should not."""
    texts = {
        "key": result.to_dict()["among"] or "",
        "closing block": closing_block(result),
        "report": headline(result) + " ".join(meaning_of_gap(result)),
        "repr": repr(result),
        "notebook": result._repr_html_(),
    }
    for what, text in texts.items():
        if ("structures in which every feature" in text) != problem.restricted:
            yield f"wrong words in {what}", text
    again = milpbn.Result.from_dict(result.to_dict())
    if again.among != result.among:
        yield "words change when they are read", repr(again.among)
    forged = {**result.to_dict(), "among": None if problem.restricted else "others"}
    try:
        milpbn.Result.from_dict(forged)
    except InputError:
        return
    yield "forged words are accepted", repr(forged["among"])


def wrong_distances(problem: Problem, result: milpbn.Result) -> Iterator[tuple[str, str]]:
    """Yield structures that score above a bound that is stated for them, and those that it wrongly leaves out."""
    covered = problem.inside if problem.restricted else problem.values
    for graph, value in list(problem.values.items())[:: max(1, len(problem.values) // 40)]:
        if not np.isfinite(value):
            continue
        found = suboptimality(problem.data, Structure(problem.data.names, graph), result, "here")
        if (found.gap is None) == (graph in covered):
            yield "bound about the wrong structures", f"{graph}: {found.reason}"
        if found.gap is not None and found.gap.absolute < -SAME * max(1.0, abs(value)):
            yield "structure above a stated bound", f"{graph} scores {value!r} above {found.bound!r}"


def test_claims_are_about_the_structures_that_they_name(share: Share, tmp_path: Path) -> None:
    for seed in share.seeds():
        rng = np.random.default_rng(seed)
        problem = draw(rng)
        share.tally.tried["cases"] += 1
        share.tally.tried["structures"] += len(problem.values)
        share.tally.outcomes[f"parent sets {problem.score.parent_sets}"] += 1
        share.tally.outcomes["a class of structures" if problem.restricted else "all structures"] += 1
        for kind, text in failures(problem, rng, tmp_path):
            share.note(kind, f"seed {seed}", f"{text}\n{problem.score}\n{problem.constraints.to_dict()}")
    share.finish()
