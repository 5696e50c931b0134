"""The layers of the package: imports run downwards, and no two modules need each other."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import networkx as nx

import milpbn
import milpbn.cli
import milpbn.instances

ROOT = Path(milpbn.__file__).parent
#: In a checkout two packages have folders beside the others; in an installed wheel they are inside.
APART = {
    f"milpbn.{name}": Path(package.__file__ or "").parent
    for name, package in (("cli", milpbn.cli), ("instances", milpbn.instances))
}
#: Lowest first; a package imports from itself and from those before it. docs/architecture.md describes each of them.
LAYERS = (
    "version",
    "errors",
    "util",
    "instances",
    "drawing",
    "data",
    "network",
    "problem",
    "claims",
    "milp",
    "heuristics",
    "certificate",
    "engine",
    "solvers",
    "trials",
    "distributed",
    "solving",
    "learners",
    "estimators",
    "sklearn",
    "plotting",
    "experiments",
    "report",
    "cli",
    "__main__",
)
#: The same inside `milpbn.engine`: its modules and packages.
ENGINE_LAYERS = (
    "thresholds",
    "events",
    "step_tuning",
    "tuning",
    "relaxation",
    "parent_sets",
    "dual",
    "pool",
    "optima",
    "reduction",
    "root",
    "tree",
)
#: Modules in the package's root folder.
AT_THE_ROOT = {"__init__", "__main__", "errors", "sklearn", "version"}
#: Names of functions that read or write files.
OPENS = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "atomic_write_text",
    "atomic_path",
    "read_csv",
}


def layer(module: str) -> str:
    return module.split(".")[1]


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module by its name; packages have the names of their folders."""
    files = {}
    for package, folder in {"milpbn": ROOT, **APART}.items():
        for path in folder.rglob("*.py"):
            files[".".join((package, *path.relative_to(folder).with_suffix("").parts))] = path
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text(encoding="utf-8"))
        for name, path in files.items()
    }


def is_package(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in modules())


@cache
def imports() -> dict[str, set[str]]:
    """Return for every module the modules of the package that it imports, in functions and for types too."""
    known = modules()
    found: dict[str, set[str]] = {}
    for name, tree in known.items():
        found[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                source = node.module or ""
                if node.level:
                    above = name.split(".")[: len(name.split(".")) - node.level + is_package(name)]
                    source = ".".join([*above, *([source] if source else [])])
                inside = [f"{source}.{alias.name}" for alias in node.names]
                named = [module if module in known else source for module in inside]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            else:
                continue
            found[name] |= {module for module in named if module in known}
    del found["milpbn"]  # its public names are imported at first use, from everywhere
    return found


def test_the_package_root_has_few_modules() -> None:
    """Modules belong into packages; only a few are in the root folder."""
    there = {path.stem for path in ROOT.glob("*.py")}
    assert there >= AT_THE_ROOT
    assert len(there - {"__init__", "__main__", "errors"}) <= 2


def test_only_formats_of_networks_read_files() -> None:
    for name, tree in modules().items():
        if layer(f"{name}.") != "network" or name.startswith("milpbn.network.formats"):
            continue
        called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {getattr(f, "id", getattr(f, "attr", "")) for f in called}
        assert not names & OPENS, f"{name} opens a file"
        assert "milpbn.util.raw_files" not in imports().get(name, set()), f"{name} reads files"


def test_every_module_has_a_layer() -> None:
    assert {layer(name) for name in imports()} <= set(LAYERS)


def test_imports_run_downwards() -> None:
    upwards = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others - {"milpbn"}
        if LAYERS.index(layer(other)) > LAYERS.index(layer(name))
    ]
    assert not upwards


def test_imports_inside_the_engine_run_downwards() -> None:
    def place(module: str) -> int:
        return ENGINE_LAYERS.index(module.split(".")[2])

    inside = {name for name in modules() if name.startswith("milpbn.engine.")}
    upwards = [
        f"{name} imports {other}"
        for name in inside
        for other in imports()[name] & inside
        if place(other) > place(name)
    ]
    assert not upwards


def test_no_modules_need_each_other() -> None:
    # A package's own module only gathers names: its modules do not need it.
    edges = [(name, other) for name, others in imports().items() for other in others if other not in name]
    graph = nx.DiGraph(edges)
    assert not [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]


def test_certificates_are_checked_without_what_searches() -> None:
    needed = {
        layer(o) for n, found in imports().items() if layer(n) == "certificate" for o in found - {"milpbn"}
    }
    assert not needed & {"engine", "heuristics", "milp"}


def test_no_class_name_stands_twice():
    """A reader who looks a class up finds one."""
    nodes = [node for tree in modules().values() for node in ast.walk(tree)]
    names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert sorted(names) == sorted(set(names))
