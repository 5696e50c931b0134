"""All kernels of the package are compiled ahead of time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import milpbn
from milpbn.learners.rehearsals import REHEARSALS
from milpbn.solving.warm_up import for_parent_sets, needed
from milpbn.util.atomic import PREFIX

ROOT = Path(milpbn.__file__).parent

#: Prints the kernels that are not on disk after all are compiled into an empty folder, and the numbers of kernels.
FRESH = """
import json
from milpbn.learners.rehearsals import compile_package
from milpbn.util.compiled import _kernels
numbers = compile_package()
absent = [".".join(name) for name, k in _kernels.items() if not k._cache.count()]
print(json.dumps([absent, len(_kernels), *numbers]))
"""


#: Compiles some kernels of a search and of the first rehearsal, twice; prints what the second time said and counted.
TWICE = """
import json
from pathlib import Path
import milpbn
from milpbn.learners import rehearsals
from milpbn.learners.rehearsals import compile_package
from milpbn.solving import warm_up
jobs = warm_up.of_default_search()[:4]
warm_up.needed = lambda *_, **__: {"search": jobs}
warm_up.for_parent_sets = lambda: jobs[:1]
rehearsals.REHEARSALS = rehearsals.REHEARSALS[:1]
compile_package()
told = []
numbers = compile_package(told.append)
print(json.dumps([str(Path(milpbn.__file__).parent), told, all(job.is_kept() for job in jobs), *numbers]))
"""


def modules_with_kernels() -> set[str]:
    """Return the modules of the package that decorate a function as a kernel."""
    found = set()
    for path in ROOT.rglob("*.py"):
        if re.search(r"^@(also_)?kernel\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.add(".".join(("milpbn", *path.relative_to(ROOT).with_suffix("").parts)))
    return found


def test_every_module_with_kernels_is_compiled_ahead_of_time() -> None:
    """A new module with kernels is called by those of the searches, or belongs to a rehearsal."""
    searches = {
        job.module
        for name in ("sm", "cll")
        for parents in (2, 3)
        for stage in needed(name, parents, rows=True).values()
        for job in stage
    } | {job.module for job in for_parent_sets()}
    assert searches | {module for each in REHEARSALS for module in each.modules} == modules_with_kernels()


def test_kernels_that_are_on_disk_are_not_compiled_again(tmp_path: Path) -> None:
    """Tests in other processes add kernels to the cache beside the sources, so this uses a copy of both."""
    shutil.copytree(ROOT, tmp_path / "milpbn", ignore=shutil.ignore_patterns(f"{PREFIX}*"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", TWICE],
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=True,
    )
    folder, told, kept, after, before = json.loads(done.stdout.splitlines()[-1])
    assert Path(folder) == tmp_path / "milpbn"
    assert kept
    assert after == before > 4
    assert told == []


@pytest.mark.slow
def test_no_kernel_is_left_out(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", FRESH],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=True,
    )
    absent, count, after, before = json.loads(done.stdout.splitlines()[-1])
    assert absent == []
    assert before == 0
    assert after >= count > 100
