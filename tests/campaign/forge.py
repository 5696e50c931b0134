"""Changes to the files of a run: results, certificates (signed anew), and solution files."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

#: Numbers that replace others.
STRANGE = (0, 1, -1, 0.5, 1e-300, 1e9, -1e9, 1e308, 10**400, -(10**400), 2**63, True)
#: Arrays of every proof by multipliers.
_MULTIPLIERS = {
    "branches", "multiplier", "multiplier_row", "row_limit", "row_members", "row_values", "step_node",
}  # fmt: skip
WORDS = (
    "", "optimal", "feasible", "certified", "solver", "time", "gap", "no_solution", "C", "X1", "1", "nan", "ä",
)  # fmt: skip


def change_number(rng: random.Random, value: float) -> Any:
    """Return another number, near or far, or a value that is not a number."""
    what = rng.random()
    # An earlier change may have put an integer there that is too large for a float.
    if isinstance(value, int) and abs(value) > 2**53:
        value = float(2**53)
    if what < 0.35:
        return value * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-15, -1))
    if what < 0.5:
        return value + rng.choice([-1, 1]) * 10 ** rng.uniform(-12, 3)
    if what < 0.85:
        return rng.choice(STRANGE)
    return rng.choice([None, "1", [], {}, -value, str(value)])


def change_leaf(rng: random.Random, value: Any) -> Any:
    """Return another value, of the same type or of another one."""
    if isinstance(value, bool) or value is None:
        return rng.choice([True, False, None, 0, 1.0, "optimal", [], {}])
    if isinstance(value, int | float):
        return change_number(rng, value)
    if isinstance(value, str):
        return rng.choice([*WORDS, value + "x", value[::-1], None, 3])
    if isinstance(value, list):
        other = list(value)
        if other and rng.random() < 0.5:
            other.pop(rng.randrange(len(other)))
        elif other:
            other.insert(rng.randrange(len(other) + 1), copy.deepcopy(rng.choice(other)))
        else:
            other.append(rng.choice(["X1", ["X1", "C"], 1, None]))
        return other
    return {}


def places(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything in a JSON value."""
    out = [path] if path else []
    items = (
        values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    )
    for key, value in items:
        out += places(value, (*path, key))
    return out


def change_json(rng: random.Random, values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return a result or header with one to three changes; some of them make a claim that is consistent in itself."""
    out = copy.deepcopy(values)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        what = rng.random()
        if what < 0.2:
            _claim_more(rng, out, names)
            continue
        path = rng.choice(places(out) or [("x",)])
        parent: Any = out
        for key in path[:-1]:
            parent = parent[key]
        if what < 0.27 and isinstance(parent, dict):
            parent.pop(path[-1], None)
        elif what < 0.34 and isinstance(parent, dict):
            other = rng.choice(list(parent))
            parent[path[-1]], parent[other] = parent.get(other), parent.get(path[-1])
        else:
            parent[path[-1]] = change_leaf(rng, parent[path[-1]] if path != ("x",) else None)
    return out


def _claim_more(rng: random.Random, out: dict[str, Any], names: list[str]) -> None:
    """Claim more than was proved: a smaller bound, optimality, arcs of every optimum, no gap."""
    what = rng.randrange(6)
    numbers = out["subset"] if rng.random() < 0.3 and isinstance(out.get("subset"), dict) else out
    if what == 0:
        numbers["bound"] = numbers.get("objective")
        out["status"] = {"reason": "optimal", "limit": None, "detail": ""}
        numbers["gap"] = dict.fromkeys(("absolute", "relative_to_bound", "relative_to_incumbent"), 0.0)
    elif (
        what == 1 and isinstance(numbers.get("bound"), float) and isinstance(numbers.get("objective"), float)
    ):
        numbers["bound"] -= rng.random() * (numbers["bound"] - numbers["objective"])
    elif what == 2:
        out["status"] = {"reason": rng.choice(["optimal", "feasible"]), "limit": None, "detail": ""}
        numbers["optimal"] = rng.choice([True, False])
    elif what == 3:
        key = rng.choice(["in", "out"])
        out["proved"] = {"in": [], "out": [], key: [rng.sample(names, 2)]}
    elif what == 4 and isinstance(out.get("structure"), dict):
        a, b = rng.sample(names, 2)
        out["structure"][b] = [a]
    elif isinstance(out.get("trace"), list):
        point = [rng.random(), numbers.get("objective"), numbers.get("bound")]
        out["trace"].insert(rng.randrange(len(out["trace"]) + 1), point)


def read_certificate(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a certificate's header and arrays, read by the documented format."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "digest"}
    return json.loads(arrays.pop("header").tobytes().decode()), arrays


def write_certificate(path: Path, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a certificate with the signature that its contents have."""
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    everything = {"header": text, **arrays}
    digest = hashlib.sha256()
    for name in sorted(everything):
        values = np.ascontiguousarray(everything[name])
        digest.update(f"{name} {values.dtype.str} {values.shape};".encode())
        digest.update(values.tobytes())
    everything["digest"] = np.frombuffer(digest.digest(), dtype=np.uint8)
    np.savez(path, **everything)  # type: ignore[arg-type]


def change_arrays(
    rng: random.Random, arrays: dict[str, np.ndarray], counts: tuple[int, ...] = (1, 1, 2, 3)
) -> dict[str, np.ndarray]:
    """Return a proof with some changes, as many as one of `counts`."""
    out = {name: values.copy() for name, values in arrays.items()}
    for _ in range(rng.choice(counts)):
        name = rng.choice(sorted(out))
        values = out[name]
        what = rng.random()
        if what < 0.03:
            del out[name]
            if not out:
                return out
            continue
        if what < 0.15 and {"branches", "leaf_node", "row_limit", "row_members"} <= set(out):
            _change_tree(rng, out)
            continue
        if what < 0.5 and set(out) >= _MULTIPLIERS:
            _change_steps(rng, out)
            continue
        if not len(values):
            continue
        at = rng.randrange(len(values))
        if what < 0.25:
            out[name] = np.delete(values, at, axis=0)
        elif what < 0.33:
            out[name] = np.concatenate([values, values[at : at + 1]])
        elif what < 0.4:
            out[name] = values[np.array(rng.sample(range(len(values)), len(values)))]
        elif what < 0.5 and len(out.get("leaf_node", ())):
            out = without_leaf(out, rng.randrange(len(out["leaf_node"])))
        elif what < 0.6 and len(out.get("deletion_size", ())):
            _delete_more(rng, out)
        elif values.dtype.kind == "f":
            flat = values.reshape(-1)
            new = change_number(rng, float(flat[rng.randrange(flat.size)]))
            inside = isinstance(new, float | int) and abs(new) < 1e308
            flat[rng.randrange(flat.size)] = new if inside else rng.choice([np.nan, np.inf, -1.0])
        elif values.dtype.kind in "iu":
            flat = values.reshape(-1)
            flat[rng.randrange(flat.size)] = rng.choice([0, 1, 2, 3, 127, 2**31 - 1, rng.randrange(60)])
        elif values.dtype.kind == "b":
            flat = values.reshape(-1)
            flat[at % flat.size] ^= True
    return out


def _change_tree(rng: random.Random, out: dict[str, np.ndarray]) -> None:
    """Forge the tree or its inequalities: no branches, another decision (it may be valid), other rows."""
    n, what = len(out["row_limit"]), rng.randrange(4)
    if what == 0:
        out["branches"], out["leaf_node"] = out["branches"][:0], out["leaf_node"][:1] * 0
    elif what == 1 and out["branches"].ndim == 2 and out["branches"].size:
        row = out["branches"][rng.randrange(len(out["branches"]))]
        row[1:4] = [rng.randrange(k) for k in (4, 6, 6)][: len(row[1:4])]
    elif what == 2 and n:
        out["row_limit"][rng.randrange(n)] = rng.randint(-2, 2)
    elif what == 3 and out["row_members"].ndim == 2:
        shape = n, out["row_members"].shape[1] + rng.randrange(2)
        drawn = [rng.random() < 0.5 for _ in range(shape[0] * shape[1])]
        out["row_members"] = np.array(drawn, dtype=bool).reshape(shape)


def _change_steps(rng: random.Random, out: dict[str, np.ndarray]) -> None:
    """Forge a proof by multipliers in one place, so that its arrays still fit together in most cases.

    It is a step or its multipliers, an inequality, a decision, or the searched parent sets.
    """
    what = rng.choice(("multiplier", "row", "fixing", "function", "kind", "members", "decision", "searched"))
    if what == "multiplier" and len(out["multiplier"]):
        k = rng.randrange(len(out["multiplier"]))
        out["multiplier"][k] = float(out["multiplier"][k]) * rng.choice([0, 0.5, 1 - 1e-9, 1 + 1e-9, 2, 1e6])
    elif what == "row" and len(out["multiplier_row"]) and len(out["row_limit"]):
        out["multiplier_row"][rng.randrange(len(out["multiplier_row"]))] = rng.randrange(
            len(out["row_limit"])
        )
    elif what == "fixing" and len(out["step_node"]):
        _change_fixing(rng, out)
    elif what == "function" and len(out["row_values"]):  # of a block, or what else belongs to an inequality
        out["row_values"][rng.randrange(len(out["row_values"]))] += rng.choice([-2, -1, -1, 1])
    elif what == "kind" and len(out["row_limit"]):
        out["row_limit"][rng.randrange(len(out["row_limit"]))] = rng.randrange(-6, 3)
    elif what == "members" and out["row_members"].size:
        row = out["row_members"][rng.randrange(len(out["row_members"]))]
        a, b = rng.randrange(len(row)), rng.randrange(len(row))
        row[[a, b]] = row[[b, a]]  # as many members, and so as many values
        row[a] ^= rng.random() < 0.3
    elif what == "decision" and len(out["branches"]):
        k = rng.randrange(len(out["branches"]))
        row = out["branches"][k]
        change = rng.randrange(4)
        if change == 0:
            row[[4, 5]] = row[[5, 4]]
        elif change == 1:
            row[[2, 3]] = row[[3, 2]]
        elif change == 2:
            row[1:4] = rng.choice([1, 3, 4]), rng.randrange(8), rng.randrange(8)
        else:
            out["branches"] = np.delete(out["branches"], k, axis=0)
    elif what == "searched" and len(out.get("searched_variable", ())):
        k = rng.randrange(len(out["searched_variable"]))
        if not {"searched_size", "searched_member"} <= set(out) or k >= len(out["searched_size"]):
            return
        first, size = int(out["searched_size"][:k].sum()), int(out["searched_size"][k])
        for name in ("searched_variable", "searched_size"):
            out[name] = np.delete(out[name], k, axis=0)
        out["searched_member"] = np.delete(out["searched_member"], slice(first, first + size), axis=0)


def _change_fixing(rng: random.Random, out: dict[str, np.ndarray]) -> None:
    """Take a step to another node or to another place in the order, or away."""
    k, sizes = rng.randrange(len(out["step_node"])), out.get("multipliers_size", np.zeros(0, dtype=np.int64))
    if rng.random() < 0.3:
        out["step_node"][k] = rng.choice(out["step_node"].tolist())
        return
    order = [j for j in range(len(sizes)) if j != k]
    if rng.random() < 0.5:
        order.insert(rng.randrange(len(order) + 1), k)
    for name in ("multiplier_row", "multiplier"):
        if len(sizes) != len(out["step_node"]) or sizes.sum() != len(out[name]) or (sizes < 0).any():
            return
    pieces = {name: np.split(out[name], np.cumsum(sizes)[:-1]) for name in ("multiplier_row", "multiplier")}
    for name, parts in pieces.items():
        out[name] = np.concatenate([out[name][:0], *(parts[j] for j in order)])
    for name in ("step_node", "multipliers_size"):
        out[name] = out[name][order]


def without_leaf(arrays: dict[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
    """Return the arrays without one leaf and its dual weights; as they are, if they do not fit together."""
    out = dict(arrays)
    if not {"deletion_node", "weights_size", "entries"} <= set(out):
        return out
    place = len(out["deletion_node"]) + number
    sizes = out["weights_size"]
    if not (place < len(sizes) and sizes.sum() == len(out["entries"]) and (sizes >= 0).all()):
        return out
    first = int(sizes[:place].sum())
    here = slice(first, first + int(sizes[place]))
    out["leaf_node"] = np.delete(out["leaf_node"], number)
    for name in ("weights_size", "temperature", "multipliers_size"):
        if place < len(out.get(name, ())):
            out[name] = np.delete(out[name], place)
    for name in ("entries", "eta"):
        if name in out:
            out[name] = np.delete(out[name], here)
    return out


def _delete_more(rng: random.Random, out: dict[str, np.ndarray]) -> None:
    """Add a fixing of one more parent set."""
    if "deleted" not in out:
        return
    group = rng.randrange(len(out["deletion_size"]))
    out["deletion_size"][group] += 1
    place = min(max(0, int(out["deletion_size"][:group].sum())), len(out["deleted"]))
    out["deleted"] = np.insert(out["deleted"], place, rng.randrange(40))


def change_solution(rng: random.Random, text: str) -> str:
    """Return a solution file with one to four changes."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        what = rng.random()
        if what < 0.1:
            del lines[at]
        elif what < 0.15:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif what < 0.2:
            lines = lines[: at + 1]
        elif what < 0.6:  # two parent sets change places: another structure, or none
            sets = [k for k, line in enumerate(lines) if "p_" in line]
            if len(sets) > 1:
                _swap_values(lines, *rng.sample(sets, 2))
        else:
            words = lines[at].replace('"', ' " ').split(" ")
            numbers = [k for k, word in enumerate(words) if _is_number(word)]
            if numbers:
                k = rng.choice(numbers)
                words[k] = str(rng.choice([0, 1, 0.5, -1, 2, 1e-9, "1e400", "nan", float(words[k]) * 1.001]))
                lines[at] = " ".join(words).replace(' " ', '"')
        if not lines:
            return "\n"
    return "\n".join(lines) + "\n"


def _swap_values(lines: list[str], a: int, b: int) -> None:
    """Exchange the values 0 and 1 of two lines of columns."""
    for k in (a, b):
        for old, new in (('value="1"', 'value="0"'), ('value="0"', 'value="1"'), (" 1", " 0"), (" 0", " 1")):
            if old in lines[k]:
                lines[k] = lines[k].replace(old, new, 1)
                break


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
