"""The checks of a run: a justified refusal or a true result, files that agree with it, and a valid certificate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import milpbn
from campaign.case import Case
from campaign.claims import Failure, check_result
from campaign.driver import Answer, command, run, verified, write_inputs
from campaign.exact import Truth, truth
from campaign.generator import DECOMPOSABLE
from campaign.lists import as_searched, check_list
from campaign.predictions import check_predictions
from campaign.refusals import backend_of, ruled_out
from campaign.space import on_paths

#: Text that a sentence for users must not contain.
ODD = re.compile(r"Traceback|unexpectedly|\bnan\b|Error\(|\bNone\b|0x[0-9a-f]{6}|<[a-z_.]+ object")


@lru_cache(maxsize=8)
def truth_of(problem: str) -> Truth:
    """Return the exact scores of a problem (`Case.problem`)."""
    return truth(Case.from_json(problem))


@cache
def verifies_exactly() -> bool:
    """Whether ``milpbn verify`` has the second checker."""
    return "--exact" in command("verify", "--help").printed


def check(case: Case, folder: Path) -> tuple[str, list[Failure]]:
    """Run a case; return its outcome in a word, and all failures."""
    known = truth_of(case.problem)
    answer = run(case, folder)
    expected = ruled_out(case, known)
    if answer.escaped:
        return "crash", [Failure("crash", answer.words)]
    if answer.code == 2:
        found = list(check_sentence(answer.words))
        if expected == "":
            found.append(Failure("refused", answer.words))
        return "refused", found
    if answer.code == 4:
        if backend_of(case) == "native":
            return "failed", [Failure("native engine failed", answer.words)]
        return "solver failed", list(check_sentence(answer.words))
    hasty = "time_limit" in case.options  # where kernels are not compiled yet, 30 seconds can be too few
    if answer.code == 3 and answer.result is None and hasty:
        return "nothing", list(check_sentence(answer.words))
    if answer.code not in (0, 3) or answer.result is None:
        return "failed", [Failure("strange exit code", f"{answer.code}: {answer.words}")]
    if expected == "no structure" and on_paths(case) and answer.result["structure"] is None:
        return "nothing", []  # the search has to find out, and may be stopped before
    if expected:
        return "accepted", [Failure("accepted", f"although: {expected}")]
    if answer.code == 3 and not hasty and backend_of(case) == "native":
        return "nothing", [Failure("nothing found", answer.words)]
    status = answer.result["status"]
    # If weights are of very different sizes, the rounding error may exceed the gap that "optimal" allows. This is
    # counted, but it is not a failure.
    stuck = status["reason"] == "feasible" and status["limit"] is None
    outcome = "feasible without a limit" if stuck else status["reason"]
    return outcome, list(check_answer(case, known, answer, folder))


def check_sentence(words: str) -> Iterator[Failure]:
    """Check the form of a refusal."""
    if (
        not words
        or "\n" in words.strip()
        or not words.rstrip().endswith((".", "?", "!"))
        or ODD.search(words)
    ):
        yield Failure("no sentence", repr(words))


def check_answer(case: Case, known: Truth, answer: Answer, folder: Path) -> Iterator[Failure]:
    """Check a result, and the files beside it."""
    result = answer.result
    assert result is not None
    part = subset_truth(case, folder) if result.get("subset") else None
    yield from check_result(case, known, result, part)
    yield from check_files(answer, result, folder)
    if result.get("alternatives") is not None:
        allowed = as_searched(case, result)
        yield from check_list(allowed, truth_of(allowed.problem), result)
    if result["structure"] is None:
        return
    bounded = (result.get("subset") or result)["bound"] is not None
    if not (case.certificate and case.score["name"] in DECOMPOSABLE):  # such classifiers are no other ones
        yield from check_predictions(case, result["structure"], answer, folder)
    if case.certificate and bounded:
        yield from check_certificate(case, folder)


def subset_truth(case: Case, folder: Path) -> Truth | None:
    """Return the exact scores over the subset that a certificate contains; None without a certificate or a subset."""
    path = folder / "proof.npz"
    if not path.exists():
        return None
    with np.load(path) as arrays:
        pairs = zip(arrays["subset_row"].tolist(), arrays["subset_weight"].tolist(), strict=True)
        return truth(case, counted={int(row): Fraction(weight) for row, weight in pairs})


def check_files(answer: Answer, result: dict[str, Any], folder: Path) -> Iterator[Failure]:
    """Check that ``result.json`` agrees with the Python object, and is unchanged when it is read and written again."""
    written = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    told = json.loads(json.dumps(result))
    if written != told:
        yield Failure("result.json says something else", f"{_difference(written, told)}")
    again = json.loads(json.dumps(milpbn.Result.load(folder / "result.json").to_dict()))
    if again != written:
        yield Failure("result.json does not come back", f"{_difference(again, written)}")
    lines = (folder / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    numbers = [
        [values.get("incumbent"), values.get("bound")]
        if isinstance(values := json.loads(line), dict)
        else values[1:]
        for line in lines
    ]
    if numbers != [point[1:] for point in result["trace"]]:
        yield Failure("trace file says something else", f"{numbers[-2:]} and {result['trace'][-2:]}")


def _difference(a: dict[str, Any], b: dict[str, Any]) -> str:
    return "; ".join(f"{k}: {a.get(k)!r}, {b.get(k)!r}" for k in {*a, *b} if a.get(k) != b.get(k))[:500]


def check_certificate(case: Case, folder: Path) -> Iterator[Failure]:
    """Check that the project's verifiers accept an honest run, the same way as the run went."""
    if case.way == "command":
        table = write_inputs(case, folder)[1]
        answer = command(
            *("verify", folder / "result.json", table, "--certificate", folder / "proof.npz"),
            *(*case.reading_arguments(), *(("--exact",) if verifies_exactly() else ())),
        )
    else:
        answer = verified(case, folder)
    if answer.code != 0:
        name = "exact verifier" if answer.words.startswith("The exact check") else "verifier"
        words = "crash" if answer.escaped else re.split(r"[^a-z ]", answer.words[1:])[0].strip()
        yield Failure(f"{name} refuses an honest run: {words}", answer.words)
