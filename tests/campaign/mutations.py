"""Forged results, certificates and solutions: the claims of those that are accepted must be true."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import milpbn
from campaign.case import Case
from campaign.checks import truth_of
from campaign.claims import Failure, check_bound, check_result, check_structure, graph_of, near
from campaign.driver import Answer, command, run, verified_exactly
from campaign.exact import Truth, truth
from campaign.forge import change_arrays, change_json, change_solution, read_certificate, write_certificate
from campaign.generator import DECOMPOSABLE, NATIVE, certifies, draw, without_small_weights
from campaign.lists import as_searched, check_list


@dataclass
class Shop:
    """An honest run with all its files."""

    case: Case
    known: Truth
    result: dict[str, Any]
    header: dict[str, Any]
    arrays: dict[str, Any]
    folder: Path
    table: Path

    def verify(self, result: Path, certificate: Path | None) -> Answer:
        """Ask the verifier."""
        proof = () if certificate is None else ("--certificate", certificate)
        return command("verify", result, self.table, *proof, *self.case.reading_arguments())

    def verify_exactly(self, values: dict[str, Any] | None, certificate: Path) -> Answer:
        """Ask the exact checker alone, of a decomposable score; others take it minutes."""
        if self.case.score["name"] not in DECOMPOSABLE:
            return Answer(2)
        return verified_exactly(self.case, values, certificate)


def open_shop(seed: int, folder: Path, aim: str) -> tuple[Shop | None, list[Failure]]:
    """Run the case of a seed, drawn until one has a certificate; None, with failures, if its honest run is refused.

    Unless `aim` is decomposable, it may have any score with certificates.
    """
    rng = random.Random(f"mutations {seed}")
    aims = ["decomposable"] if aim == "decomposable" else ["all", "all", "weights", "decomposable"]
    while True:
        case = draw(rng.randrange(2**40), rng.choice(aims))
        native = case.score["name"] in NATIVE
        subset = {"subset": max(2, len(case.rows) // 2)} if native and rng.random() < 0.3 else {}
        keep = {
            k: v
            for k, v in case.options.items()
            if k in ("threads", "merge", "reduce", "root_only", "subset", "n_best", "within")
        }
        case = case.but(options={**subset, **keep}, start=None, certificate=True, way="python", copies=[])
        if not certifies(case) or len(truth_of(case.problem).values) < 2:
            continue
        answer = run(case, folder)
        if answer.code == 0 and answer.result is not None and (folder / "proof.npz").exists():
            break
    shop = Shop(
        case, truth_of(case.problem), answer.result, *read_certificate(folder / "proof.npz"), folder,
        case.write_table(folder),
    )  # fmt: skip
    # Sign the unchanged certificate again first. If that gave another signature, no forgery would be read at all.
    write_certificate(folder / "proof.npz", shop.header, shop.arrays)
    honest = [shop.verify(folder / "result.json", folder / "proof.npz")]
    if case.score["name"] in DECOMPOSABLE:
        honest.append(shop.verify_exactly(shop.result, folder / "proof.npz"))
    refused = [Failure("honest run refused", one.words[-800:]) for one in honest if one.code != 0]
    if refused:
        return None, refused
    return shop, []


def forge(shop: Shop, seed: int) -> list[Failure]:
    """Make one forgery and verify it; return the false claims that were accepted, and crashes."""
    rng = random.Random(f"forge {seed}")
    for name in ("forged.json", "forged.npz"):
        (shop.folder / name).unlink(missing_ok=True)
    kind = rng.random()
    if kind < 0.45:
        return list(_forged_result(rng, shop))
    return list(_forged_certificate(rng, shop) if kind < 0.9 else _forged_both(rng, shop))


def _forged_result(rng: random.Random, shop: Shop) -> Iterator[Failure]:
    result = change_json(rng, shop.result, shop.case.names)
    path = shop.folder / "forged.json"
    path.write_text(json.dumps(result), encoding="utf-8")
    answer = shop.verify(path, shop.folder / "proof.npz")
    yield from _judge(shop, answer, result, shop.arrays, "result")
    shown = command("info", path)
    if shown.escaped or shown.code not in (0, 2):
        yield Failure("info of a forged result crashes", shown.words[-800:])


def _forged_certificate(rng: random.Random, shop: Shop) -> Iterator[Failure]:
    """Change the proof, mostly together with its claims: another structure, and a bound that is too small."""
    header, arrays = dict(shop.header), change_arrays(rng, shop.arrays)
    false = rng.random() < 0.6
    if false:
        header |= _false_claim(rng, shop)
        header |= _told_of(rng, shop, header)
    path = shop.folder / "forged.npz"
    write_certificate(path, header, arrays)
    if not false and rng.random() < 0.5:
        answer = shop.verify(shop.folder / "result.json", path)
        yield from _judge(shop, answer, shop.result, arrays, "certificate")
        yield from _judge(shop, shop.verify_exactly(shop.result, path), shop.result, arrays, "certificate")
        return
    yield from _judge(shop, shop.verify(path, None), header, arrays, "certificate")
    yield from _judge(shop, shop.verify_exactly(None, path), header, arrays, "certificate")


def _forged_both(rng: random.Random, shop: Shop) -> Iterator[Failure]:
    """Write the same false claim into both files; the proof is unchanged or changed a little."""
    claim = _false_claim(rng, shop)
    arrays = shop.arrays if rng.random() < 0.5 else change_arrays(rng, shop.arrays)
    claim |= _told_of(rng, shop, {**shop.result, **claim})
    result = {**shop.result, **claim, "trace": [[0.0, claim["objective"], claim["bound"]]]}
    write_certificate(shop.folder / "forged.npz", {**shop.header, **claim}, arrays)
    path = shop.folder / "forged.json"
    path.write_text(json.dumps(result), encoding="utf-8")
    for answer in (
        shop.verify(path, shop.folder / "forged.npz"),
        shop.verify_exactly(result, shop.folder / "forged.npz"),
    ):
        yield from _judge(shop, answer, result, arrays, "result and certificate")


def _told_of(rng: random.Random, shop: Shop, claim: dict[str, Any]) -> dict[str, Any]:
    """Return what else a result says, so that it does not contradict a false claim: then the proof has to."""
    z, b = claim["objective"], claim["bound"]
    optimal = b is not None and b - z <= shop.result["tolerance"]
    words = {"reason": "optimal" if optimal else "feasible", "limit": None, "detail": ""}
    running = claim["status"]["reason"] == "running"
    native = shop.case.score["name"] in NATIVE
    proved = rng.choice([None, {"in": [], "out": []}, shop.result["proved"]]) if native else None
    return {"gap": _gap(z, b), "status": claim["status"] if running else words, "proved": proved}


def _gap(z: float, b: float | None) -> dict[str, float | None]:
    if b is None:
        return dict.fromkeys(("absolute", "relative_to_bound", "relative_to_incumbent"))
    return {
        "absolute": b - z,
        "relative_to_bound": (b - z) / abs(b) if b else None,
        "relative_to_incumbent": (b - z) / abs(z) if z else None,
    }


def _false_claim(rng: random.Random, shop: Shop) -> dict[str, Any]:
    """A structure that may be worse, its score, and a bound between that and the optimum; of the subset, if any."""
    names = shop.case.names
    graph = rng.choice(list(shop.known.values))
    mapping = {name: [names[j] for j in parents] for name, parents in zip(names, graph, strict=True)}
    part = _part(shop.case, shop.arrays) if shop.header.get("subset") else None
    known = part or shop.known
    if shop.header.get("alternatives"):
        return _false_list(rng, shop)
    z, best = float(known.values[graph]), float(known.optimum or 0)
    claim: dict[str, Any] = {"structure": mapping, "objective": float(shop.known.values[graph])}
    bound = z + rng.choice([0.0, rng.random(), 1 - 1e-6, 1 - 1e-12]) * (best - z)
    if part is None:
        return {**claim, "bound": bound}
    subset = {**shop.header["subset"], "objective": z, "bound": bound, "gap": _gap(z, bound)}
    subset["optimal"] = bound - z <= shop.result["tolerance"]
    return {**claim, "bound": None if rng.random() < 0.7 else bound, "subset": subset}


def _false_list(rng: random.Random, shop: Shop) -> dict[str, Any]:
    """A list of a running search that may lack better structures, and bounds that may be too small."""
    names, of, values = shop.case.names, shop.header["alternatives"], shop.known.values
    ranked = sorted(values, key=lambda graph: -values[graph])
    graphs = rng.sample(ranked, rng.randint(1, min(of["asked"], len(ranked))))
    if rng.random() < 0.6:  # the honest list, but for one structure
        graphs = ranked[: len(of["structures"])]
        del graphs[rng.randrange(len(graphs)) if len(graphs) > 1 else 1 :][: rng.choice([1, 2])]
    graphs.sort(key=lambda graph: -values[graph])
    structures = [
        {
            "objective": float(values[graph]),
            "structure": {
                name: [names[j] for j in parents] for name, parents in zip(names, graph, strict=True)
            },
        }
        for graph in graphs
    ]
    first, last = structures[0], structures[-1]["objective"]
    others = max((float(value) for graph, value in values.items() if graph not in graphs), default=last)
    bound = last + rng.choice([0.0, rng.random(), 1 - 1e-6, 1.0]) * (others - last)
    exhausted = rng.random() < 0.2
    listed = {**of, "structures": structures, "bound": None if exhausted else bound, "exhausted": exhausted}
    listed |= {"optimal": exhausted or rng.random() < 0.5, "same_posteriors": [], "markov_equivalent": []}
    status = {"reason": "running", "limit": None, "detail": ""}
    top = max(float(values[ranked[0]]), bound)
    return {**first, "bound": top + rng.random(), "alternatives": listed, "status": status}


def _part(case: Case, arrays: dict[str, Any]) -> Truth | None:
    if "subset_row" not in arrays or "subset_weight" not in arrays:
        return None
    pairs = zip(arrays["subset_row"].tolist(), arrays["subset_weight"].tolist(), strict=True)
    return truth(case, counted={int(row): Fraction(weight) for row, weight in pairs})


def _judge(
    shop: Shop, answer: Answer, claims: dict[str, Any], arrays: dict[str, Any], what: str
) -> Iterator[Failure]:
    if answer.escaped or answer.code not in (0, 2):
        yield Failure(f"forged {what} crashes the verifier", answer.words[-800:])
        return
    if answer.code == 2:
        return
    try:
        false = list(_false_parts(shop, claims, arrays))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        yield Failure(
            f"forged {what} verified, though malformed", f"{type(error).__name__} {error}: {claims}"[:1500]
        )
        return
    for failure in false:
        yield Failure(f"forged {what} verified: {failure.kind}", f"{failure.text} in {claims}"[:1500])


def _false_parts(shop: Shop, claims: dict[str, Any], arrays: dict[str, Any]) -> Iterator[Failure]:
    """Yield the false claims of a result or of the header of a certificate."""
    for key, kind in (("score", milpbn.Score), ("constraints", milpbn.Constraints)):
        if kind.from_dict(claims[key]).to_dict() != kind.from_dict(shop.result[key]).to_dict():
            yield Failure(f"another {key}", f"{claims[key]}")
            return
    part = _part(shop.case, arrays) if claims.get("subset") else None
    if claims.get("subset") and part is None:
        yield Failure("subset of no samples", "")
        return
    if part is not None and claims["subset"]["samples"] != len(part.scores.rows):
        yield Failure("subset of other size", f"{claims['subset']['samples']}")
    full = _filled(shop.case.names, claims)
    if full["bound_source"] != "certified":
        yield Failure("wrong bound source", repr(full["bound_source"]))
    if claims.get("alternatives"):
        allowed = as_searched(shop.case, claims)
        for failure in check_list(allowed, truth_of(allowed.problem), full):
            if failure.kind not in ("ended without proof", "too late"):
                yield failure
    for failure in check_result(shop.case, shop.known, {**full, "bound_source": "certified"}, part):
        if not (failure.kind == "trace ends elsewhere" or _says_less(failure, full)):
            yield failure


def _filled(names: list[str], claims: dict[str, Any]) -> dict[str, Any]:
    """Return claims with omitted keys filled in: an omission is not false (also of variables without parents)."""
    out = {"bound_source": "certified", "trace": [], "status": {"reason": "feasible"}, **claims}
    out["structure"] = {name: claims["structure"].get(name, []) for name in (*names, *claims["structure"])}
    out["gap"] = {**_gap(out["objective"], out["bound"]), **(claims.get("gap") or {})}
    return out


def _says_less(failure: Failure, claims: dict[str, Any]) -> bool:
    """Whether a status is wrong only in that it does not call an optimum one."""
    subset = claims.get("subset") or {}
    return (
        failure.kind == "wrong status"
        and claims["status"]["reason"] != "optimal"
        and not subset.get("optimal")
    )


def save(shop: Shop, failure: Failure, origin: str, parent: Path) -> Path:
    """Copy what was forged into a new folder, with the command that accepts it; return the folder."""
    folder = parent / re.sub(r"[^a-z0-9]+", "-", failure.kind.lower()).strip("-")[:60]
    folder.mkdir(parents=True, exist_ok=True)
    for name in (shop.table.name, "proof.npz", "result.json", "forged.json", "forged.npz"):
        if (shop.folder / name).exists():
            shutil.copy(shop.folder / name, folder / name)
    reading = shlex.join([shop.table.name, *shop.case.reading_arguments()])
    (folder / "record.json").write_text(shop.case.to_json() + "\n", encoding="utf-8")
    (folder / "README.txt").write_text(
        f"What: {failure.kind}\n\nFound by: {origin}\n\nCommands (in this folder; proof.npz and result.json are of an "
        "honest run; one of these holds what was forged last):\n"
        f"  milpbn verify forged.json {reading} --certificate proof.npz\n"
        f"  milpbn verify forged.npz {reading}\n  milpbn verify forged.json {reading} --certificate forged.npz\n"
        f"  milpbn info forged.json\n\nExpected: a sentence, exit code 2.\n\nFound:\n  {failure.text}\n",
        encoding="utf-8",
    )
    return folder


def import_forged(seed: int, folder: Path, count: int) -> tuple[Case, int, list[Failure]]:
    """Export the case of a seed, forge solution files of its start, and import them.

    Returns
    -------
    tuple
        The case, the number of solution files tried, and the failures.
    """
    rng = random.Random(f"solutions {seed}")
    while True:
        case = draw(rng.randrange(2**40)).but(start=None, certificate=False, options={}, copies=[])
        if case.score.get("leave_one_out"):  # `milpbn export` multiplies small weights by a factor
            case = without_small_weights(case)
        if case.score["name"] == "cll" or not truth_of(case.problem).values:
            continue
        table = case.write_table(folder)
        arguments = [*case.reading_arguments(), *case.solve_arguments()]
        for old in folder.glob("m.*"):
            old.unlink()
        answer = command("export", table, *arguments, "--output", folder / "m.lp", "-q")
        if answer.code == 0:
            break
        if answer.escaped:
            return case, 1, [Failure("export crashes", answer.words[-800:])]
    found: list[Failure] = []
    # Start files have the form of solution files; those of CPLEX and Gurobi hold some of the columns only, and CBC
    # wants the objective of its start the other way round.
    starts = sorted(folder.glob("m.start.*"))
    complete = [folder / "m.start.highs.sol", folder / "m.start.scip.sol"]
    for k in range(count):
        original = rng.choice(complete if k == 0 else starts).read_text(encoding="utf-8")
        text = original if k == 0 else change_solution(rng, original)
        (folder / "m.forged.sol").write_text(text, encoding="utf-8")
        (folder / "imported.json").unlink(missing_ok=True)
        bound = ("--bound", repr(rng.gauss(0, 100))) if rng.random() < 0.15 else ()
        answer = command("import", folder / "m.forged.sol", "--output", folder / "imported.json", *bound)
        found += _judge_import(case, answer, folder / "imported.json", text, honest=k == 0 and not bound)
    return case, count, found


def _judge_import(case: Case, answer: Answer, path: Path, text: str, *, honest: bool) -> Iterator[Failure]:
    if answer.escaped or answer.code not in (0, 2):
        yield Failure("forged solution crashes the import", f"{answer.words[-800:]}\n{text[:1500]}")
        return
    if answer.code == 2:
        if honest:
            yield Failure("honest solution refused", f"{answer.words}\n{text[:1500]}")
        return
    result, known = json.loads(path.read_text(encoding="utf-8")), truth_of(case.problem)
    false = list(check_structure(case, known, result["structure"]))
    if not false:
        exact = known.scores.of(graph_of(case, result["structure"]))
        if exact is None or not near(result["objective"], float(exact)):
            false.append(Failure("wrong objective", f"{result['objective']!r}, exactly {exact}"))
        if result["bound_source"] == "certified" and result["bound"] is not None:
            false += check_bound(case, known, result["bound"], "certified")
        if result["bound"] is not None and result["bound"] < result["objective"]:
            false.append(Failure("bound below the objective", f"{result['bound']!r}"))
    for failure in false:
        yield Failure(f"forged solution imported: {failure.kind}", f"{failure.text}\n{text[:1500]}")
