"""Random cases and forgeries: some 4 seconds in every run of the suite, `--campaign SECONDS` by hand.

The suite begins with the same seeds in every run, so that it fails because of a change and not by chance. By hand seeds
are fresh, and printed. A failure is printed with its seed and record, shrunk, and written into a
folder with a table and a command line. `--campaign-seed N` begins with the seed that was printed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.case import Case
from campaign.checks import check, truth_of
from campaign.failures import report
from campaign.generator import draw
from campaign.mutations import forge, import_forged, open_shop, save
from campaign.refusals import backend_of
from campaign.share import Share
from campaign.space import on_paths

#: Tests that divide the time: random cases, forged files, forged solutions.
CASES, FORGERIES, SOLUTIONS = 3, 2, 1
#: Seconds for shrinking a failure.
SHRINKING = 20.0


def _describe(case: Case) -> str:
    record = case.to_json()
    return record if len(record) < 3000 else record[:3000] + " ..."


@pytest.mark.parametrize("number", range(CASES))
def test_random_cases_agree_with_exact_scores(share: Share, tmp_path: Path, number: int) -> None:
    for seed in share.seeds():
        case = draw(seed, share.aim)
        outcome, failures = check(case, tmp_path)
        share.tally.tried["cases"] += 1
        share.tally.tried["structures enumerated"] += len(truth_of(case.problem).values)
        share.tally.tried["certificates"] += case.certificate and (tmp_path / "proof.npz").exists()
        share.tally.outcomes[outcome] += 1
        share.tally.outcomes[f"{len(case.names)} variables"] += 1
        share.tally.outcomes["lists"] += "n_best" in case.options
        share.tally.outcomes["constraints on paths"] += on_paths(case)
        share.tally.outcomes[f"{case.score['name']} by {backend_of(case)}"] += 1
        for failure in failures:
            origin = f"pytest --campaign, aim {share.aim}, seed {seed}"
            if not share.tally.fail(failure.kind, origin):
                continue
            small, folder = report(case, failure, origin, share.failures, SHRINKING)
            share.texts.append(
                f"{failure.kind} (seed {seed}): {failure.text[-1000:]}\nrecord: {_describe(case)}\n"
                f"shrunk, in {folder}:\n{_describe(small)}\n{(folder / 'command.txt').read_text()}"
            )
    share.finish()


@pytest.mark.parametrize("number", range(FORGERIES))
def test_forged_results_and_certificates_are_refused(share: Share, tmp_path: Path, number: int) -> None:
    """A forgery is verified only if its claims are true."""
    for seed in share.seeds():
        shop, failures = open_shop(seed, tmp_path, share.aim)
        share.tally.tried["honest runs to forge"] += 1
        for failure in failures:
            share.note(failure.kind, f"mutations of seed {seed}", failure.text)
        if shop is None:
            continue
        for k in range(share.per_run):
            share.tally.tried["forgeries"] += 1
            for failure in forge(shop, seed * 1000 + k):
                origin = f"mutations of seed {seed}, forgery {k}"
                if share.tally.fail(failure.kind, origin):
                    folder = save(shop, failure, origin, share.failures)
                    share.texts.append(f"{failure.kind} ({origin}, in {folder}): {failure.text[:1000]}")
    share.finish()


@pytest.mark.parametrize("number", range(SOLUTIONS))
def test_forged_solutions_are_refused(share: Share, tmp_path: Path, number: int) -> None:
    """`milpbn import` makes a true result of a changed solution file, or refuses it with a sentence."""
    for seed in share.seeds():
        case, count, failures = import_forged(seed, tmp_path, share.per_run)
        share.tally.tried["solution files"] += count
        for failure in failures:
            share.note(
                failure.kind, f"solutions of seed {seed}", f"{failure.text}\nrecord: {_describe(case)}"
            )
    share.finish()
