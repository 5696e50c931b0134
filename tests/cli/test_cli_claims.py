"""Every number and word of a result: ``verify`` refuses a false one, unless it is listed as one that is not checked."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cli_common import load, refused, run, succeed, toy_rows, write_csv

from milpbn.certificate.format import load_proof, save_certificate
from milpbn.certificate.verify.claim import KEYS
from milpbn.claims.reasons import Reason
from milpbn.cli.table_options import TableOptions

#: Runs whose results are changed: their options beside p.
RUNS = {
    "optimal": ["--p", 0.9, "--parameters", "hybrid"],
    "limited": ["--p", 0.9, "--gap-rel", 0.05, "--no-class-parents"],
    "constrained": ["--p", 0.95, "--max-parents", 3, "--forbid", "a,b", "--max-children", "c=1"],
    "subset": ["--p", 0.9, "--subset", 12],
    "subset-limited": ["--p", 0.99, "--subset", 20, "--gap-rel", 0.5],
    "selected": ["--p", "cv"],
    "screened": ["--p", 0.99, "--max-parents", 3, "--screen", 4, "--gap-rel", 0.01],
}
#: Keys that claim nothing about structures and are not printed: `verify` accepts any value that is consistent.
NOT_CLAIMS = re.compile(
    r"trace\[\d+\]\[0\]|seconds\..*|selection\..*|parameters\..*|request\..*|"
    r"trace\[\d+\]\[[12]\]"  # inside the trace: true if it is monotone and ends with the proved numbers
)


@pytest.fixture(autouse=True)
def one_reading(monkeypatch):
    """Let all runs of `verify` share the table, which is the same in all of them."""
    read, tables = TableOptions.read, {}

    def read_once(self, source, *, in_units=False):
        if (source, in_units) not in tables:
            tables[source, in_units] = read(self, source, in_units=in_units)
        return tables[source, in_units]

    monkeypatch.setattr(TableOptions, "read", read_once)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, and a result and a certificate of every run."""
    folder = tmp_path_factory.mktemp("claims")
    write_csv(folder / "toy.csv", toy_rows(count=80))
    for name, options in RUNS.items():
        files = ["--output", folder / f"{name}.json", "--certificate", folder / f"{name}.npz"]
        succeed("solve", folder / "toy.csv", "--threads", 1, *options, *files)
    return folder


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all values that hold no others; an empty list or object is one.

    Of a list of more than four items, which are all checked alike, only the first and the last two are met.
    """
    inside = list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    if isinstance(value, list) and len(inside) > 4:
        inside = [inside[0], *inside[-2:]]
    if not inside or not value:
        yield path
    for key, item in inside if value else ():
        yield from leaves(item, (*path, key))


def name_of(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = deepcopy(document)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def false_values(document: dict[str, Any], path: tuple[Any, ...]) -> list[Any]:
    """Return plausible values that differ from a leaf's value."""
    value, name = at(document, path), name_of(path)
    others = {
        "status.reason": tuple(Reason),
        "status.limit": ("time", "node", "memory", "gap", "user", None),
        "bound_source": ("certified", "solver"),
        "proved": ({"in": [], "out": [["a", "c"], ["c", "a"]]},),
        "subset": (subset_of(document),),
        "screened": (screened_of(document),),
        "nodes": (3, 10**6),
        "backend.threads": (1, 2, 8, None),
        "score.gamma": (1.0, 5.0),
        "score.name": ("sm", "sbm", "cll", "mdl"),
        "bound": (document["objective"], document["objective"] + 1.0),
        "selection": ({"p": 0.9, "max_parents": 2, "protocol": "x", "interrupted": False, "trials": []},),
        "class": ("a", "b"),
    }
    if name in others:
        return [other for other in others[name] if other != value]
    if path[0] == "constraints":
        arcs = {"tiers": [["b"], ["a"]], "max_children": {"a": 0}, "fixed": {"a": []}, "allowed": {"a": []}}
        return [arcs.get(path[1], [["a", "b"]]) if not value else "c" if isinstance(value, str) else 0]
    if path[0] == "structure":
        parent = next(other for other in document["structure"] if other not in (path[1], value))
        return [[parent]] if value == [] else [parent, "nobody"]
    if name.startswith("proved") and isinstance(value, list):
        return [[["a", "b"]], [["class", "a"]]]
    if value is None:
        return [1.0]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        # An ulp is enough for scores, bounds and gaps.
        step = max(1e-9, 1e-9 * abs(value)) if isinstance(value, float) else 1
        return [value + step, value - step, 0 if value else 1]
    return [f"{value}x", "b" if value == "class" else "class"]


def subset_of(document: dict[str, Any]) -> dict[str, Any]:
    numbers = {key: document[key] for key in ("objective", "bound", "gap")}
    return {"samples": 5, **numbers, "optimal": document["status"]["reason"] == "optimal"}


def screened_of(document: dict[str, Any]) -> dict[str, Any]:
    numbers = {key: document[key] for key in ("objective", "bound", "gap")}
    kept = dict.fromkeys(document["structure"], 3)
    optimal = document["status"]["reason"] == "optimal"
    named = {"k": 3, "criterion": "linear gain", "total": 1000, "ranked": 9, "kept": kept}
    return {**named, **numbers, "optimal": optimal}


def shown(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line.startswith("seconds")]


@pytest.mark.parametrize("name", RUNS)
def test_every_value_of_a_result_is_checked_or_listed_as_unchecked(folder, name, tmp_path):
    document = load(folder / f"{name}.json")
    table, proof = folder / "toy.csv", ["--certificate", folder / f"{name}.npz"]
    honest = succeed("verify", folder / f"{name}.json", table, *proof)
    target = tmp_path / "r.json"
    refusals, accepted, met = 0, [], load(folder / "optimal.json") if name != "optimal" else {}
    for path in leaves(document):
        if met.get(path[0]) and NOT_CLAIMS.fullmatch(name_of(path)):
            continue
        values = false_values(document, path)
        # All values in one run, one in the others, which check what only they have.
        for value in values if name == "optimal" else values[:1]:
            target.write_text(json.dumps(replaced(document, path, value)))
            done = run("verify", target, table, *proof)
            if done.exit_code == 0:
                changed = replaced(document, path, value)
                if path[0] == "proved" and at(changed, path[:3]) == ["a", "b"]:
                    assert "--forbid" in RUNS[name]  # so it is true
                    continue
                if value == "running":
                    continue  # it claims less: a killed run leaves such a result beside a certificate that is newer
                assert NOT_CLAIMS.fullmatch(name_of(path)), (name_of(path), value)
                assert shown(done.stdout) == shown(honest.stdout)
                accepted.append((path, value))
                continue
            refusals += 1
            assert done.exit_code == 2, (path, value, done.output)
            assert done.stdout == ""
            assert done.stderr.startswith("Error: ")
            assert len(done.stderr.splitlines()) == 1
    assert refusals > (100 if name == "optimal" else 40)
    of = document["subset"] or document["screened"] or document
    for path, value in accepted:
        if path[0] == "trace" and path[2] == 1:
            assert value <= of["objective"]
        elif path[0] == "trace" and path[2] == 2:
            assert value >= of["bound"]


@pytest.mark.parametrize("name", ["optimal", "subset-limited", "screened"])
def test_every_value_of_a_header_is_checked_or_listed_as_unchecked(folder, name, tmp_path):
    """Certificates whose header is false although their hash is right are refused."""
    header, arrays = load_proof(folder / f"{name}.npz")
    target = tmp_path / "c.npz"
    honest = run("verify", folder / f"{name}.npz", folder / "toy.csv")
    accepted = set()
    for path in leaves(header):
        values = false_values(header, path)
        # All values in one run, and where the others have numbers of their own; one value elsewhere.
        for value in values if name == "optimal" or path[0] in ("subset", "screened") else values[:1]:
            save_certificate(target, replaced(header, path, value), arrays)
            done = run("verify", target, folder / "toy.csv")
            assert done.exit_code in (0, 2), (path, value, done.output)
            if done.exit_code == 0:
                accepted.add(name_of(path))
                assert shown(done.stdout) == shown(honest.stdout), (path, value)
    # Who ran it, how it ended and its name: without the result nobody can check these.
    names = {
        "data.name",
        "seed",
        "run",
        "nodes",
        "milpbn",
        "bound_source",
        "status.limit",
        "status.reason",
        "subset.optimal",
        "screened.optimal",
        "screened.k",
        "screened.criterion",
        "screened.ranked",
        "tolerance",  # a smaller one, which claims less
        "proved",
    }
    names |= {"status.detail", *(f"backend.{key}" for key in header["backend"])}
    # A header alone may also name another problem for which the proof is valid (with two classes, sbm is sm), or
    # another structure with the same score.
    assert {name for name in accepted if not re.match(r"(score|structure)\.", name)} <= names


def test_a_subsets_result_with_a_bound_for_all_rows_is_refused(folder, tmp_path):
    """The bound of a subset says nothing about all rows: verify and info refuse a bound for all rows beside it."""
    document = load(folder / "subset.json")
    score = document["objective"]
    forged = {**document, "bound": score, "status": {"reason": "optimal", "limit": None, "detail": ""}}
    forged["gap"] = dict.fromkeys(document["gap"], 0.0)
    (tmp_path / "r.json").write_text(json.dumps(forged))
    for arguments in (
        ["verify", tmp_path / "r.json", folder / "toy.csv", "--certificate", folder / "subset.npz"],
        ["info", tmp_path / "r.json"],
        ["score", tmp_path / "r.json", folder / "toy.csv", "--bound", tmp_path / "r.json"],
    ):
        assert "only a subset was searched" in refused(*arguments).stderr


def test_info_attributes_the_bound_to_the_file(folder):
    done = run("info", folder / "optimal.json")
    assert "(the file says certified; milpbn verify checks it with the certificate)" in done.stdout
    done = run("info", folder / "subset.json")
    assert "(the file says certified; milpbn verify checks it with the certificate), gap" in done.stdout


def test_every_key_is_in_the_table_of_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "numbers.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {key.split(".")[0] for row in rows for key in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert set(KEYS) <= named
