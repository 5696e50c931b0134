"""Random cases, each from a seed of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from campaign.case import MISSING, Case
from campaign.space import MARGIN_SCORES, TooManyError, candidates, structures

SCORES = ("sm", "sbm", "hard-margin", "cll", "ll", "mdl", "aic", "aicc", "bdeu")
NATIVE = ("sm", "sbm", "cll")
DECOMPOSABLE = ("ll", "mdl", "aic", "bdeu")
#: Largest number of structures of a problem; smaller for CLL, whose sums need logarithms.
MOST, MOST_CLL = 3000, 600
#: Share of the arcs that are forbidden, by the number of variables, where decomposable scores are aimed at.
MISSING_ARCS = {5: (0.0, 0.5), 6: (0.3, 0.7), 7: (0.45, 0.8)}
#: What cases can be aimed at: everything; weights of all sizes under the scores with certificates; constraints and
#: starts; certificates of decomposable scores; extreme numbers, which may be refused, but must not get a false answer.
AIMS = ("all", "weights", "constraints", "decomposable", "extremes")
#: Every seed has its own aim; this is how often each occurs. Extremes occur only on request.
MIXED = "mixed"
SHARES = {"all": 5, "weights": 3, "constraints": 2, "decomposable": 1}


def draw(seed: int, aim: str = MIXED) -> Case:
    """Return the case of a seed.

    Parameters
    ----------
    seed : int
        Any.
    aim : str
        One of `AIMS`, or `MIXED`.
    """
    rng = random.Random(f"{aim} {seed}")
    if aim == MIXED:
        (aim,) = rng.choices(list(SHARES), list(SHARES.values()))
    while True:
        case = _case(rng, aim)
        try:
            structures(case, MOST_CLL if case.score["name"] == "cll" else MOST)
        except TooManyError:
            continue
        return case


def certifies(case: Case) -> bool:
    """Whether the search for a case can write a certificate."""
    options, name = case.options, case.score["name"]
    if name in NATIVE:
        return options.get("backend", "auto") in ("auto", "native")
    return name in DECOMPOSABLE and own_search(options)


def own_search(options: Mapping[str, Any]) -> bool:
    """Whether a decomposable score is maximised by branch and cut: nothing that only MILP solvers take is asked for."""
    plain = options.get("warm_start", True) and options.get("root_bound", True)
    return options.get("backend", "auto") in ("auto", "branch-and-cut") and (
        plain and options.get("acyclicity", "order") == "order"
    )


def _case(rng: random.Random, aim: str) -> Case:
    case = _table(rng, aim)
    case = case.but(score=_score(rng, aim))
    if case.score.get("leave_one_out") and rng.random() < 0.9:  # else weights below 1 are refused
        case = without_small_weights(case)
    if rng.random() < {"all": 0.35, "constraints": 1.0, "decomposable": 0.6}.get(aim, 0.0):
        case = case.but(constraints=_constraints(rng, case.names))
    if aim == "decomposable":
        case = case.but(constraints={**case.constraints, **_few_structures(rng, case.names)})
    case = case.but(options=_options(rng, case, aim))
    if rng.random() < {"all": 0.15, "constraints": 0.7}.get(aim, 0.0):
        case = case.but(start=_start(rng, case))
        if rng.random() < 0.3:
            case = case.but(constraints=_against(rng, case))
    command = rng.random() < 0.3 and "root_only" not in case.options and sum(case.copies or [0]) < 1000
    certificate = rng.random() < (0.02 if not certifies(case) else 0.9 if aim == "decomposable" else 0.5)
    if command and case.score.get("leave_one_out"):  # the command line multiplies small weights by a factor
        case = without_small_weights(case)
    return case.but(way="command" if command else "python", certificate=certificate)


def without_small_weights(case: Case) -> Case:
    """Return the case with 1 added to weights below 1, of which a leave-one-out score has no unit to leave out."""
    return case.but(weights=[w + 1.0 if 0 < w < 1 else w for w in case.weights])


def _table(rng: random.Random, aim: str) -> Case:
    """A table whose features depend on the class and each other, more or less."""
    shape = rng.random()
    n_features = rng.choice([3, 4, 4, 5, 6] if aim == "decomposable" else [1, 2, 2, 3, 3, 3, 4, 4, 5])
    n_classes = rng.choice([2, 2, 2, 3, 3, 4])
    n_rows = rng.randint(2, 22)
    states = [rng.choice([2, 2, 2, 3, 3, 4]) for _ in range(n_features)]
    if shape < 0.04:  # many classes
        n_features, n_classes, n_rows = rng.randint(1, 2), rng.randint(10, 60), rng.randint(20, 90)
        states = states[:n_features]
    elif shape < 0.08:  # many states
        n_features, n_rows = rng.randint(1, 2), rng.randint(10, 60)
        states = [rng.randint(2, 300) for _ in range(n_features)]  # of three, tables would have 300^3 cells
    elif shape < (0.6 if aim == "constraints" else 0.2):
        for i in rng.sample(range(n_features), rng.randint(1, (n_features + 1) // 2)):
            states[i] = 1  # a constant feature
    rows = [_row(rng, states, n_classes) for _ in range(n_rows)]
    if rng.random() < 0.3:  # duplicates
        rows += [list(rng.choice(rows)) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.25:  # a class, and a state, of one sample only
        rows.append([*(rng.randrange(k) for k in states), n_classes])
        n_classes += 1
    declared = rng.random() < 0.3
    missing = "drop"
    if rng.random() < 0.12:
        missing = rng.choice(["drop", "state"])
        for row in rows:
            if rng.random() < 0.2:
                row[rng.randrange(len(row))] = MISSING
        # A row without any value is an empty line of a file, which is no row.
        rows = [row for row in rows if set(row) != {MISSING}]
    if len({row[-1] for row in rows} - {MISSING}) < 2:
        rows += [[0] * len(states) + [c] for c in range(2)]
    labels = [[f"s{k:03d}" for k in range(n)] for n in states]
    labels.append([f"c{k:03d}" for k in range(n_classes)])
    names = [f"X{i + 1}" for i in range(len(states))] + [rng.choice(["C", "class", "A"])]
    copies = []
    if rng.random() < (0.05 if aim == "weights" else 0.02):
        copies = [rng.choice([1, 10, 1000, 100_000]) for _ in rows]
    return Case(
        names=names,
        labels=labels,
        rows=rows,
        weights=_weights(rng, len(rows), aim),
        copies=copies,
        missing=missing,
        declared=declared,
        target_first=rng.random() < 0.2,
    )


def _row(rng: random.Random, states: list[int], n_classes: int) -> list[int]:
    c = rng.randrange(n_classes)
    row: list[int] = []
    for i, k in enumerate(states):
        told = c + (row[-1] if row and rng.random() < 0.5 else 0) + i
        row.append(rng.randrange(k) if rng.random() < 0.4 else told % k)
    return [*row, c]


def _weights(rng: random.Random, count: int, aim: str) -> list[float]:
    kind = rng.uniform(0.6, 1.0) if aim in ("weights", "extremes") else rng.random()
    if aim == "extremes" and rng.random() < 0.5:
        return [float(f"{10 ** rng.uniform(-15, 13):.3g}") for _ in range(count)]
    if kind < 0.45:
        return [1.0] * count
    if kind < 0.55:
        return [float(rng.randint(0 if rng.random() < 0.1 else 1, 5)) for _ in range(count)]
    if kind < 0.65:
        return [round(rng.uniform(0.05, 3), 3) for _ in range(count)]
    if kind < 0.72:
        return [rng.choice([0.134, 0.1, 1 / 3])] * count
    if kind < 0.82:  # few sizes, far apart
        sizes = [10.0 ** rng.randint(-9, 9) for _ in range(2)]
        return [rng.choice(sizes) for _ in range(count)]
    if kind < 0.92:  # all sizes
        return [float(f"{10 ** rng.uniform(-9, 9):.{rng.choice([1, 3, 17])}g}") for _ in range(count)]
    return [10.0 ** rng.uniform(-9, 9)] * count


def _score(rng: random.Random, aim: str) -> dict[str, Any]:
    name = rng.choices(SCORES, weights=[6, 4, 2, 5, 1, 1, 1, 2, 1])[0]
    if aim in ("weights", "extremes"):
        name = rng.choice(NATIVE)
    if aim == "decomposable":
        name = rng.choice(DECOMPOSABLE)
    score: dict[str, Any] = {"name": name}
    if rng.random() < 0.6:
        score["max_parents"] = rng.choice([1, 2, 3, 3])
    if rng.random() < 0.5:
        score["class_parents"] = rng.random() < 0.4
    if name in ("sm", "sbm"):
        what = rng.random()
        if what < 0.5:
            score["p"] = rng.choice([0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999])
        elif what < 0.8:
            score["gamma"] = float(f"{10 ** rng.uniform(-3, 2):.3g}")
    if name in MARGIN_SCORES:
        if rng.random() < 0.4:
            score["smoothing"] = float(f"{10 ** rng.uniform(-6, 4):.2g}")
        if rng.random() < 0.2:
            score["penalty"] = rng.choice(["bic", "aic", 0.5, 0.01, 20.0])
        if rng.random() < (0.5 if aim == "weights" else 0.2):
            score["hybrid"] = float(f"{10 ** rng.uniform(-4, 4):.3g}")
        if aim == "extremes":  # a few of them far beyond the documented ranges
            low, high = (-320, 20) if rng.random() < 0.05 else (-12, 12)
            score["smoothing"] = float(f"{10 ** rng.uniform(low, high):.3g}") or 5e-324
            if rng.random() < 0.3:
                score["hybrid"] = float(f"{10 ** rng.uniform(low, high):.3g}")
            if name in ("sm", "sbm") and rng.random() < 0.5:
                score = {key: value for key, value in score.items() if key != "p"}
                score["gamma"] = float(f"{10 ** rng.uniform(-9, 6):.3g}")
    elif rng.random() < 0.4:
        score["parent_sets"] = "all"
    if name == "bdeu" and rng.random() < 0.7:
        score["equivalent_sample_size"] = float(f"{10 ** rng.uniform(-3, 3):.3g}")
    if rng.random() < (0.25 if name in (*MARGIN_SCORES, "ll") else 0.01):
        score["leave_one_out"] = True
        if isinstance(score.get("penalty"), str) and rng.random() < 0.9:  # refused
            score["penalty"] = 0.3
        if name == "ll" and rng.random() < 0.5:
            score["smoothing"] = float(f"{10 ** rng.uniform(-6, 4):.2g}")
    own = random.Random(
        rng.getstate()[1][0]
    )  # of a stream of its own, which leaves the draws after it as they are
    if own.random() < (0.3 if name in MARGIN_SCORES else 0.01):
        score["smoothing_towards"] = own.choice(["uniform", "marginal", "class"])
    if rng.random() < 0.02:  # options that exclude each other
        score |= rng.choice([{"gamma": 1.0}, {"penalty": "aic"}, {"parent_sets": "all"}, {"hybrid": 1.0}])
    if name in MARGIN_SCORES and own.random() < 0.3:
        score["parent_sets"] = own.choice(["paper", "all"])
    return score


def _constraints(rng: random.Random, names: list[str]) -> dict[str, Any]:
    rules: dict[str, Any] = {}

    def arcs(most: int) -> list[list[str]]:
        return [rng.sample(names, 2) for _ in range(rng.randint(1, most))]

    def parents(child: str) -> list[str]:
        others = [name for name in names if name != child]
        return rng.sample(others, rng.randint(0, min(2, len(others))))

    kinds = ("required", "forbidden", "tiers", "max_children", "fixed", "allowed", "arc_weights")
    for kind in rng.sample(kinds, rng.choice([1, 1, 2, 3])):
        if kind == "required":
            rules[kind] = arcs(2)
        elif kind == "forbidden":
            rules[kind] = arcs(4)
        elif kind == "tiers":
            order = rng.sample(names, rng.randint(2, len(names)))
            cut = rng.randint(1, len(order) - 1)
            rules[kind] = [order[:cut], order[cut:]]
        elif kind == "max_children":
            rules[kind] = {rng.choice([*names, "*"]): rng.randint(0, 2)}
        elif kind in ("fixed", "allowed"):
            rules[kind] = {(child := rng.choice(names)): parents(child)}
        else:
            weights = {tuple(arc): round(rng.gauss(0, 3), rng.choice([0, 2, 15])) for arc in arcs(3)}
            rules[kind] = [[a, b, w] for (a, b), w in weights.items()]
    own = random.Random(rng.getstate()[1][0])  # of a stream of its own; see `_score`
    if own.random() < 0.2:
        rules["max_features"] = own.randint(0, len(names) - 1)
    return rules


def _few_structures(rng: random.Random, names: list[str]) -> dict[str, Any]:
    """Constraints on paths, and of many variables so many forbidden arcs that all structures can be enumerated."""
    pairs = [[a, b] for a in names for b in names if a != b]
    rules: dict[str, Any] = {}
    if len(names) > 4:
        rules["forbidden"] = rng.sample(pairs, round(len(pairs) * rng.uniform(*MISSING_ARCS[len(names)])))
    if rng.random() < 0.4:
        for kind in rng.sample(("ancestors", "no_ancestors", "independences"), rng.choice([1, 1, 2, 3])):
            found = rng.sample(pairs, rng.choice([1, 1, 2]))
            if kind == "independences":
                between = [[name for name in names if rng.random() < 0.3] for _ in found]
                rules[kind] = [
                    [*pair, [name for name in own if name not in pair]]
                    for pair, own in zip(found, between, strict=True)
                ]
            else:
                rules[kind] = found
    return rules


def _against(rng: random.Random, case: Case) -> dict[str, Any]:
    """Return a constraint that the start violates, if it has an arc; preferably about an arc without effect."""
    last = case.names[-1]
    arcs = [(a, b, last in (b, *parents)) for b, parents in (case.start or {}).items() for a in parents]
    if not arcs:
        return case.constraints
    a, b, _ = min(arcs, key=lambda arc: (arc[2], rng.random()))
    kind = rng.choice(["forbidden", "tiers", "allowed", "max_children"])
    broken: dict[str, Any] = {
        "forbidden": [[a, b]],
        "tiers": [[b], [a]],
        "allowed": {b: [name for name in case.names if name not in (a, b)]},
        "max_children": {a: 0},
    }
    return {kind: broken[kind]}


def _options(rng: random.Random, case: Case, aim: str) -> dict[str, Any]:
    name = case.score["name"]
    options: dict[str, Any] = {"threads": rng.choice([1, 1, 1, 2])}
    backend = rng.choices(["auto", "native", "highs", "cbc", "cpsat", "scip"], [4, 4, 4, 1, 0.5, 1])[0]
    if aim in ("weights", "extremes") or (backend == "native" and name not in NATIVE and rng.random() < 0.9):
        backend = "auto"
    if backend != "auto":
        options["backend"] = backend
    own = backend in ("auto", "native") and name in NATIVE
    if aim == "decomposable":
        own, options = True, {"threads": 1, "backend": rng.choice(["auto", "branch-and-cut"])}
    if not own or (aim != "decomposable" and rng.random() < 0.03):
        options["acyclicity"] = rng.choice(["order", "order", "cluster", "cluster", "flow"])
        for switch in ("warm_start", "root_bound"):
            if rng.random() < 0.3:
                options[switch] = False
    if not own:
        options["time_limit"] = 30.0  # solvers have been seen to go on forever
    elif rng.random() < 0.02:
        options["time_limit"] = rng.choice([0.001, 0.05, 0.2])
    for switch in ("reduce", "merge"):
        if rng.random() < 0.25:
            options[switch] = False
    if rng.random() < 0.05:
        options["root_only"] = True
    if rng.random() < 0.05:
        options[rng.choice(["gap_rel", "gap_abs", "gap_se"])] = 10 ** rng.uniform(-4, 0)
    if rng.random() < (0.12 if name in NATIVE else 0.01) and aim == "all":
        options["subset"] = rng.randint(1, max(2, len(case.rows)))
    if aim == "decomposable" and rng.random() < 0.4:
        options["n_best"] = rng.choice([2, 2, 3, 3, 5, 5, 8, 8, 20, 20, 50, 700])
        if rng.random() < 0.3:
            options["within"] = rng.choice([0, 0.1, 1, 3, 30])
    if rng.random() < 0.2:
        options["random_state"] = rng.randint(0, 1000)
    return options


def _start(rng: random.Random, case: Case) -> dict[str, list[str]]:
    """Some acyclic structure: of candidate sets, or of any, or features under the class with arcs between constants."""
    last = len(case.names) - 1
    order = rng.sample(range(last + 1), last + 1)
    kind = rng.random()
    wild = kind < 0.4
    start = {}
    if kind > 0.7:
        for position, i in enumerate(order := [i for i in order if i != last]):
            alone = len(case.labels[i]) > 1 or position == 0
            chosen = [last] if alone else rng.sample(order[:position], min(position, rng.choice([1, 1, 2])))
            start[case.names[i]] = [case.names[j] for j in sorted(chosen)]
        return {**start, case.names[last]: []}
    for position, i in enumerate(order):
        before = set(order[:position])
        if wild and rng.random() < 0.7:
            size = min(len(before), rng.choice([0, 1, 1, 2]))
            parents = tuple(rng.sample(sorted(before), size))
        else:
            fitting = [s for s in candidates(case, i) if before.issuperset(s)]
            parents = rng.choice(fitting or [()])
        start[case.names[i]] = [case.names[j] for j in sorted(parents)]
    return start
