"""Every reader as a function of bytes, which must answer, or refuse with a sentence."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

from milpbn.errors import MilpbnError
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.problem.subset import Subset
from milpbn.solving.options import Options

from .mutate import npz_members
from .shop import GRADIENTS, QUICK, SEARCHED, checkpoint_state, run

#: Longest sentence.
LONGEST_SENTENCE = 3000


class Unsound(AssertionError):  # noqa: N818  # what is unsound is the reader
    """A reader's answer is not a sentence, or is false."""


@dataclass(frozen=True)
class Reader:
    """A reader, and what to feed it.

    Attributes
    ----------
    name : str
        For reports.
    file : str
        Name of the file that an input becomes.
    form : str
        As `mutate.generate` wants it.
    seeds : tuple of str
        Valid files in the shop; what begins with ``=`` is the input itself.
    read : callable
        Takes the file's path and the shop; raises `MilpbnError` or, of command lines, returns the sentence.
    named : bool
        Whether the sentence has to name the file.
    share : float
        Of the time that all readers have.
    """

    name: str
    file: str
    form: str
    seeds: tuple[str, ...]
    read: Callable[[Path, Path], object]
    named: bool = True
    share: float = 1.0

    def pool(self, shop: Path) -> list[bytes]:
        """Return the valid inputs."""
        return [s[1:].encode() if s.startswith("=") else (shop / s).read_bytes() for s in self.seeds]

    def harness(self, shop: Path, folder: Path) -> Callable[[bytes], str]:
        """Return the reader as a function from bytes to its answer, ``''`` or the sentence.

        Any other exception is a failure of the reader.
        """
        path = folder / self.file

        def feed(data: bytes) -> str:
            path.write_bytes(data)
            try:
                answer = self.read(path, shop)
            except (MilpbnError, click.UsageError) as error:
                sentence = str(error) if isinstance(error, MilpbnError) else error.format_message()
                check_sentence(sentence, path.name.partition(".")[0] if self.named else "")
                return sentence
            return answer if isinstance(answer, str) else ""

        return feed


def check_sentence(sentence: str, culprit: str) -> None:
    """Refuse what no user could act on.

    Raises
    ------
    Unsound
        If a sentence has no end, is absurdly long, would garble a terminal, or does not name the culprit.
    """
    if not sentence.rstrip("'\")").endswith((".", "?", "!")):
        raise Unsound(f"no end: {sentence[-200:]!r}")
    if culprit not in sentence:
        raise Unsound(f"does not name {culprit!r}: {sentence[:300]!r}")


# -- the package's readers --------------------------------------------------------------------------------


def _table(path: Path, shop: Path) -> None:
    import milpbn

    table = milpbn.read_table(path)
    table.dataset("train")


def _stateful_table(path: Path, shop: Path) -> None:
    import milpbn

    table = milpbn.read_table(
        path, missing="state", states="declared", class_weights="balanced", nominal=["count"], target="class"
    )
    table.dataset("train")


def _weighted_table(path: Path, shop: Path) -> None:
    import milpbn

    milpbn.read_table(path, weights="w", continuous=["size"]).dataset("all")


@cache
def _toy(shop: Path) -> Any:
    import milpbn

    return milpbn.read_table(shop / "toy.csv", weights="w").dataset("train")


@cache
def _classifier_of(shop: Path) -> Any:
    from milpbn.network import load_any_classifier

    return load_any_classifier(shop / "classifier.json")


def _samples(path: Path, shop: Path) -> None:
    from milpbn.data import read_samples

    classifier = _classifier_of(shop)
    classifier.predict_log_joint(read_samples(path, classifier.variables))


def _catalog(path: Path, shop: Path) -> None:
    import milpbn

    copy = path.with_name("toy.csv.gz")
    if not copy.exists():
        copy.write_bytes((shop / "toy.csv.gz").read_bytes())
    milpbn.read_table("toy", data_dir=path.parent)


def _structure(path: Path, shop: Path) -> None:
    from milpbn.network import read_structure

    read_structure(path, _toy(shop).names)


def _constraints(path: Path, shop: Path) -> None:
    from milpbn.cli.constraint_options import read_constraints
    from milpbn.problem.conflicts import resolve

    resolve(read_constraints(str(path)), _toy(shop).names, Score())


def _classifier(path: Path, shop: Path) -> None:
    from milpbn.network import load_any_classifier, save_classifier

    classifier = load_any_classifier(path)
    if {v.name for v in classifier.variables[:-1]} <= set(_toy(shop).names):
        classifier.predict(shop / "toy.csv")
    save_classifier(classifier, path.with_name("again.json"))


def _network(path: Path, shop: Path) -> None:
    from milpbn.network import read_network, write_network

    classifier = read_network(path, "a" if path.suffix == ".dne" else None)
    write_network(classifier, path.with_name("again.json"))
    again = path.with_name("again.xdsl" if path.suffix == ".dne" else f"again{path.suffix}")
    write_network(classifier, again)
    back = read_network(again)
    if back.variables != classifier.variables or back.structure != classifier.structure:
        raise Unsound("a network is not what its own file says")


def _local_scores(path: Path, shop: Path) -> None:
    from milpbn.milp.files.jkl_file import read_jkl, write_jkl

    write_jkl(read_jkl(path), path.with_name("again.jkl"))


def _result(path: Path, shop: Path) -> None:
    from milpbn.claims.result import Result
    from milpbn.solving.progress import closing_block

    result = Result.load(path)
    closing_block(result)
    result.primal_dual_integral()
    result.save(path.with_name("again.json"))


def _comparison(path: Path, shop: Path) -> None:
    from milpbn.learners.figures import Comparison
    from milpbn.plotting import draw_comparison
    from milpbn.util.jsonable import parse_object, read_text

    document = parse_object(read_text(path, "file"))
    str(Comparison.read(document, f"The file {str(path)!r}"))
    draw_comparison(document)


def _certificate(path: Path, shop: Path) -> None:
    from milpbn.certificate.format import load_proof

    load_proof(path)


def _verified(path: Path, shop: Path) -> None:
    from milpbn.certificate.format import load_proof, save_certificate
    from milpbn.certificate.verify.check import verify

    contents = _contents(path)
    if contents is None:
        return
    save_certificate(path, *contents)
    load_proof(path)
    verify(None, path, _toy(shop))


def _contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return header and arrays of an archive, so that it can be written anew; None if there are none.

    A mutation breaks the digest, which would end every check at once.
    """
    members = npz_members(path.read_bytes())
    arrays = {}
    try:
        for name, content in members.items():
            arrays[name.removesuffix(".npy")] = np.load(io.BytesIO(content), allow_pickle=False)
        arrays.pop("digest", None)
        header = json.loads(arrays.pop("header").tobytes())
        json.dumps(header)
    except Exception:
        return None
    return (header, arrays) if isinstance(header, dict) else None


def _search(path: Path, shop: Path) -> None:
    import milpbn
    from milpbn.problem.rescore import rescore

    result = milpbn.solve(
        _toy(shop), SEARCHED, threads=1, verbose=False, time_limit=10, checkpoint=path, resume=True
    )
    assert result.structure is not None
    value = rescore(_toy(shop), result.structure, SEARCHED)
    if abs(value - result.objective) > 1e-9 * abs(value):
        raise Unsound(f"a structure that scores {value!r} is said to score {result.objective!r}")


def _sidecar(path: Path, shop: Path) -> None:
    from milpbn.milp.files.sidecar import Sidecar

    sidecar = Sidecar.load(path)
    sidecar.structure(_solution_of(shop), str(path))


@cache
def _solution_of(shop: Path) -> Any:
    from milpbn.milp.files.solution_files import read_solution

    return read_solution(shop / "highs.sol").values


@cache
def _sidecar_of(shop: Path) -> Any:
    from milpbn.milp.files.sidecar import Sidecar

    return Sidecar.load(shop / "model.json")


def _solution(path: Path, shop: Path) -> None:
    from milpbn.milp.files.solution_files import read_solution

    solution = read_solution(path)
    assert solution.limit is None or isinstance(solution.limit, str)
    _sidecar_of(shop).structure(solution.values, f"The solution {str(path)!r}")


@cache
def _checkpoint_of(shop: Path) -> tuple[str, Mapping[str, Any]]:
    return checkpoint_state(shop)


def _checkpoint(path: Path, shop: Path) -> None:
    from milpbn.learners.differentiable.checkpoints import load_checkpoint

    name, arrays = _checkpoint_of(shop)
    state = {key: np.copy(array) for key, array in arrays.items()}
    history = load_checkpoint(path, name, state)
    if not all(np.isfinite(array).all() for array in state.values()):
        raise Unsound("a checkpoint that is not finite is taken")
    for i, (number, value, error) in enumerate(history):
        if number != i + 1 or not isinstance(value, float) or not isinstance(error, float | None):
            raise Unsound(f"a history is taken whose entry {i} is {number!r}, {value!r}, {error!r}")


# -- options of the command line --------------------------------------------------------------------------


def _options(path: Path, shop: Path) -> None:
    import milpbn
    from milpbn.cli import types
    from milpbn.problem.conflicts import resolve

    kind, _, value = path.read_bytes().decode(errors="surrogateescape").partition("=")
    option = getattr(types, kind, None)
    if not isinstance(option, types.Parsed):
        return
    parsed = option.convert(value, click.Option(["--it"]), None)
    if kind in _RULES:
        resolve(Constraints(**_RULES[kind](parsed)), _toy(shop).names, Score())
    for make, names in _OPTIONS_OF.get(kind, ()):
        for name in names.split():
            _accepting(make, **{name: parsed})
    if kind == "CLASS_WEIGHTS":
        milpbn.read_table(shop / "toy.csv", class_weights=parsed)
    elif kind == "NAMES":
        milpbn.read_table(shop / "toy.csv", nominal=parsed[:1], continuous=parsed[1:])


#: Constraints of a parsed option, by the name of its type; and options that take a number or a count.
_RULES: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "ARC": lambda arc: {"required": (arc,), "forbidden": (arc[::-1],)},
    "INDEPENDENCE": lambda one: {"independences": (one,)},
    "ARC_WEIGHT": lambda weight: {"arc_weights": dict([weight])},
    "TIERS": lambda tiers: {"tiers": tiers},
    "FAMILY": lambda family: {"fixed": dict([family])},
    "CHILD_LIMIT": lambda limit: {"max_children": dict([limit])},
}
_OPTIONS_OF: Mapping[str, tuple[tuple[Callable[..., object], str], ...]] = {
    "NUMBER": ((Score, "gamma p smoothing penalty hybrid"), (Options, "time_limit gap_rel gap_abs")),
    "COUNT": ((Score, "max_parents"), (Subset, "samples"), (Options, "threads random_state")),
}


def _accepting(make: Callable[..., object], **options: object) -> None:
    try:
        make(**options)
    except MilpbnError as error:
        check_sentence(str(error), "")


_OPTIONS = (
    "NUMBER=0.9", "COUNT=3", "NUMBER_OR_CV=cv", "COUNT_OR_CV=2", 'NAMES=colour,"wide, name"', "ARC=class,colour",
    'ARC_WEIGHT=colour,"wide, name"=-0.5', "TIERS=class;colour,size", "FAMILY=count=class", "FAMILY=count=",
    "CHILD_LIMIT=colour=1", "CHILD_LIMIT=2", "CLASS_WEIGHTS=yes=2,no=1.5", "CLASS_WEIGHTS=balanced", "SETTING=k=v",
)  # fmt: skip

# -- whole command lines ----------------------------------------------------------------------------------

_SOLVE = (*QUICK, "--quiet")
#: Verb by the kind of file; HERE is the hostile file, SHOP the folder of valid ones.
COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "toy.csv": (
        ("solve", "HERE", *QUICK, "--output", "OUT", "--classifier", "OUT2"),
        ("predict", "SHOP/classifier.json", "HERE", "--proba", "--joint"),
        ("evaluate", "SHOP/classifier.json", "HERE"),
        ("info", "HERE"),
        ("score", "SHOP/arcs.txt", "HERE"),
        ("learn", "tan", "HERE", "--output", "OUT"),
        ("export", "HERE", "--output", "OUT.lp"),
        ("verify", "SHOP/result.json", "HERE", "--certificate", "SHOP/certificate.npz"),
    ),
    "arcs.txt": (
        ("solve", "SHOP/toy.csv", *_SOLVE, "--start", "HERE"),
        ("score", "HERE", "SHOP/toy.csv", "--weights", "w"),
        ("plot", "HERE", "--output", "OUT.svg"),
    ),
    "constraints.json": (("solve", "SHOP/toy.csv", *_SOLVE, "--constraints", "HERE"),),
    "classifier.json": (
        ("predict", "HERE", "SHOP/toy.csv"),
        ("evaluate", "HERE", "SHOP/toy.csv"),
        ("query", "HERE", "--mpe"),
        ("query", "HERE", "--sample", "2", "--seed", "1"),
        ("info", "HERE"),
        ("plot", "HERE", "--output", "OUT.svg"),
        ("solve", "SHOP/toy.csv", *_SOLVE, "--start", "HERE"),
    ),
    "averaged.json": (
        ("predict", "HERE", "SHOP/toy.csv", "--proba"),
        ("evaluate", "HERE", "SHOP/toy.csv"),
        ("info", "HERE"),
        ("precision", "HERE", "SHOP/toy.csv"),
        ("query", "HERE", "--evidence", "a=x"),
        ("solve", "SHOP/toy.csv", *_SOLVE, "--start", "HERE"),
        ("score", "SHOP/arcs.txt", "SHOP/toy.csv", "--weights", "w", "--bound", "HERE"),
    ),
    "pseudo.json": (("predict", "HERE", "SHOP/toy.csv", "--proba"), ("info", "HERE")),
    "result.json": (
        ("info", "HERE"),
        ("score", "SHOP/arcs.txt", "SHOP/toy.csv", "--weights", "w", "--bound", "HERE"),
        ("verify", "HERE", "SHOP/toy.csv", "--weights", "w", "--certificate", "SHOP/certificate.npz"),
        ("plot", "HERE", "--output", "OUT.svg"),
    ),
    "certificate.npz": (
        ("verify", "SHOP/result.json", "SHOP/toy.csv", "--weights", "w", "--certificate", "HERE"),
    ),
    "model.json": (("import", "SHOP/highs.sol", "--model", "HERE"), ("info", "HERE")),
    "highs.sol": (("import", "HERE", "--model", "SHOP/model.lp", "--output", "OUT"),),
    "cplex.sol": (("import", "HERE", "--model", "SHOP/model.lp", "--output", "OUT"),),
    "checkpoint.npz": ((*GRADIENTS, "SHOP/toy.csv", "--checkpoint", "HERE"),),
}


def _command_line(kind: str) -> Callable[[Path, Path], str]:
    def read(path: Path, shop: Path) -> str:
        content = path.read_bytes()
        commands = COMMANDS[kind]
        words = commands[len(content) % len(commands)]
        out = str(path.with_name("out"))
        places = {"HERE": str(path), "SHOP": str(shop), "OUT": out}
        arguments = [re.sub("HERE|SHOP|OUT", lambda m: places[m[0]], word) for word in words]
        if kind == "model.json":  # found by the model's stem
            arguments = [
                str(path.with_suffix(".lp")) if a == str(path) and words[0] == "import" else a
                for a in arguments
            ]
        code, _, err = run(*arguments)
        if code not in (0, 2, 3):
            raise Unsound(f"milpbn {words[0]} ends with {code}: {err[-600:]}")
        if code:
            last = [line for line in err.splitlines() if line.startswith("Error: ")]
            if len(last) != 1 or err.splitlines()[-1] != last[0]:
                raise Unsound(f"milpbn {words[0]} ends with {len(last)} sentences: {err[-600:]}")
            check_sentence(last[0], "")
            if len(last[0]) > LONGEST_SENTENCE or not last[0].isprintable():
                raise Unsound(f"milpbn {words[0]}: too long or unprintable: {last[0][:300]!r}")
        return err.splitlines()[-1] if code else ""

    return read


_TABLES = ("toy.csv", "semicolon.csv")
#: What no file of ours has: noisy and deterministic nodes, functions, levels; `milpbn_class` names the class.
_GENIE = """<smile><nodes><cpt id="a"><state id="x"/><state id="y"/><probabilities>.3 .7</probabilities>
<property id="milpbn_class">yes</property></cpt>
<noisymax id="m"><state id="p"/><state id="q"/><parents>a</parents><strengths>1 0</strengths>
<parameters>.2 .8 0 1 .1 .9</parameters></noisymax>
<deterministic id="d"><state id="u"/><state id="v"/><parents>a m</parents>
<resultingstates>u v v u</resultingstates></deterministic></nodes></smile>"""
_NETICA = """bnet n { node a { kind = NATURE; discrete = TRUE; states = (x, y); parents = (); probs = (.3, .7); };
node m { kind = NATURE; discrete = FALSE; levels = (0, 1.5, INFINITY); parents = (a); functable = (#1, 1); };
node d { kind = NATURE; discrete = FALSE; states = (u, v); levels = (-3, 0, 3); parents = (a, m);
probs = ((.5, .5), (@imposs, 1), (#0), .25, .75); }; };"""
_PARQUETS = ("toy", "when", "list", "decimal", "bytes", "span", "struct")
READERS: tuple[Reader, ...] = (
    Reader("CSV", "input.csv", "text", _TABLES, _table, share=2),
    Reader("CSV with options", "input.csv", "text", _TABLES, _stateful_table),
    Reader("CSV with weights", "input.csv", "text", _TABLES, _weighted_table),
    Reader("CSV to predict on", "input.csv", "text", _TABLES, _samples),
    Reader("TSV", "input.tsv", "text", ("toy.tsv",), _table),
    Reader("ARFF", "input.arff", "text", ("toy.arff",), _table, share=2),
    Reader(
        "Parquet", "input.parquet", "bytes", tuple(f"{name}.parquet" for name in _PARQUETS), _table, share=2
    ),
    Reader("GOBNILP data", "input.dat", "text", ("toy.dat",), _table),
    Reader("BIF", "input.bif", "text", ("toy.bif",), _network),
    Reader("XMLBIF", "input.xml", "text", ("toy.xml",), _network),
    Reader("GeNIe", "input.xdsl", "text", ("toy.xdsl", f"={_GENIE}"), _network),
    Reader("Hugin", "input.net", "text", ("toy.net",), _network),
    Reader("Netica", "input.dne", "text", (f"={_NETICA}",), _network),
    Reader("local scores", "input.jkl", "text", ("toy.jkl",), _local_scores),
    Reader("gzip", "input.csv.gz", "gzip", ("toy.csv.gz",), _table),
    Reader("catalog", "catalog.json", "json", ("catalog.json",), _catalog),
    Reader("structure", "input.txt", "text", ("arcs.txt",), _structure, share=3),
    Reader(
        "structure (JSON)", "input.json", "json", ("result.json", "tan.json", "classifier.json"), _structure
    ),
    Reader("constraints", "input.json", "json", ("constraints.json",), _constraints, named=False),
    Reader(
        "classifier",
        "input.json",
        "json",
        ("classifier.json", "pseudo.json", "averaged.json"),
        _classifier,
        share=2,
    ),
    Reader("result", "input.json", "json", ("result.json", "subset.json"), _result, share=2),
    Reader("comparison", "input.json", "json", ("compare.json",), _comparison, named=False),
    Reader("certificate", "input.npz", "npz", ("certificate.npz",), _certificate),
    Reader("certificate (digest renewed)", "input.npz", "npz", ("certificate.npz",), _verified, named=False),
    Reader("sidecar", "input.json", "json", ("model.json",), _sidecar),
    Reader(
        "solution of CPLEX", "input.sol", "text", ("cplex.sol", "model.start.cplex.mst"), _solution, share=3
    ),
    Reader("solution of Gurobi", "input.sol", "text", ("gurobi.sol",), _solution, share=3),
    Reader("solution of SCIP", "input.sol", "text", ("scip.sol",), _solution, share=3),
    Reader("solution of HiGHS (raw)", "input.sol", "text", ("highs.sol", "sparse.sol"), _solution, share=3),
    Reader("solution of HiGHS (pretty)", "input.sol", "text", ("pretty.sol",), _solution, share=3),
    Reader("solution of CBC", "input.sol", "text", ("cbc.sol", "model.start.cbc.sol"), _solution, share=3),
    Reader("checkpoint", "input.npz", "npz", ("checkpoint.npz",), _checkpoint),
    Reader("checkpoint of a search", "input.npz", "npz", ("search.npz",), _search),
    Reader("options", "input", "text", tuple("=" + o for o in _OPTIONS), _options, named=False, share=2),
    *(
        Reader(
            f"milpbn with {kind}",
            "input" + Path(kind).suffix,
            {".json": "json", ".npz": "npz"}.get(Path(kind).suffix, "text"),
            (kind,),
            _command_line(kind),
            named=False,
            share=0.6,
        )
        for kind in COMMANDS
    ),
)
