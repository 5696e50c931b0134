"""Lists of the K best structures against the exact scores of all structures."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import milpbn
from campaign.case import Case
from campaign.checks import check, check_certificate, truth_of
from campaign.claims import Failure
from campaign.driver import write_inputs
from campaign.generator import NATIVE, certifies, draw
from campaign.lists import as_searched, check_list
from campaign.share import Share

#: Scores that branch and cut lists structures for.
LINEAR = ("ll", "mdl", "aic", "bdeu")


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
    case = case.but(
        options=options, certificate=certifies(case), copies=[]
    )  # without merging, copies take minutes
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
