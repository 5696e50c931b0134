"""What ``milpbn info`` says about archives: certificates and checkpoints."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def is_archive(path: str) -> bool:
    """Whether a file is a zip archive, as certificates and checkpoints are."""
    return Path(path).is_file() and zipfile.is_zipfile(path)


def describe_archive(path: str) -> list[str]:
    """Describe a certificate or a checkpoint, in lines; raise InputError if the file is neither, or cannot be read."""
    from milpbn.certificate.format import load_proof
    from milpbn.errors import InputError
    from milpbn.learners.differentiable.checkpoints import KIND as TRAINING
    from milpbn.learners.finished import KIND as COMPARISON
    from milpbn.solving.checkpoint import KIND, LARGEST, load_saved_search
    from milpbn.util.checkpoints import load_checkpoint

    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        raise InputError(f"The archive {path!r} cannot be read: it is damaged.") from None
    if "header.npy" not in members:
        raise InputError(
            f"The file {path!r} is an archive, but neither a certificate nor a checkpoint of milpbn."
        )
    # In the checkpoint of a search the proof's arrays have longer names.
    if {"leaf_node.npy", "step_node.npy"} & {*members}:
        try:
            return _describe_certificate(path, *load_proof(path))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InputError(f"The certificate {path!r} is not complete.") from None
    found = load_checkpoint(path, None, LARGEST)
    assert found is not None
    kind, header = found.header["kind"], found.header
    if kind not in (KIND, TRAINING, COMPARISON):
        raise InputError(f"The checkpoint {path!r} is of an unknown kind of work.")
    lines = [f"checkpoint  of a {kind}, {path}"]
    if kind == KIND:
        lines.append(f"state       {load_saved_search(path).state()}")
    with suppress(KeyError, TypeError, AttributeError, IndexError, ValueError):
        if kind == TRAINING:
            lines.append(f"epochs      {len(header['history'])}")
        if kind == COMPARISON:
            names = [str(values.get("name")) for _, _, values in header["rows"]]
            counts = (f"{name} on {names.count(name)} of the splits" for name in dict.fromkeys(names))
            lines.append(f"finished    {', '.join(counts)}")
    return lines


def _describe_certificate(path: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> list[str]:
    from milpbn.claims.reading import read_among
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.scores.spec import Score
    from milpbn.solving.progress import among_lines, show_number

    data, status = header["data"], header["status"]
    sizes, among = f"{data.get('samples')} samples, {data.get('features')} features", list[str]()
    if "score" in header:
        score = Score.from_dict(header["score"])
        weights = Constraints.from_dict(header["constraints"]).arc_weights
        described = score.describe(arc_weights=weights, discretisation=data.get("discretisation"))
        among = among_lines(read_among(header, f"The certificate {path!r}"), 12)
    else:
        described = "local scores"
        sizes = f"{data['parent_sets']} parent sets of {data['variables']} variables"
    leaves = len(arrays["leaf_node"]) if "leaf_node" in arrays else len(arrays["branches"]) + 1
    return [
        f"certificate {path}",
        f"data        {data['name']}: {sizes}",
        f"score       {described}",
        f"status      {status['reason']}  (as the file says)",
        *among,
        f"incumbent   {show_number(header['objective'])}  (as the file says)",
        f"bound       {show_number(header['bound'])}  (as the file says; milpbn verify --certificate checks it)",
        f"leaves      {leaves}",
    ]
