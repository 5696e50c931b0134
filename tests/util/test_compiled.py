"""Kernels: compiled once, called by address, kept on disk, compiled by several processes."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import typeof

from milpbn.engine.dual import frank_wolfe, newton
from milpbn.engine.dual.frank_wolfe import take_compiled_steps
from milpbn.engine.relaxation import branching, oracle
from milpbn.engine.relaxation.oracle import heaviest_structure
from milpbn.problem import products
from milpbn.util.compiled import KernelCache, _lock_file, _reached, kernel, source_stamp, specialized
from milpbn.util.compiling import Compilation

#: A module of kernels that call each other, small enough to be compiled in a test.
KERNELS = """
import numpy as np
from milpbn.util.compiled import also_kernel, specialized, kernel

@kernel(linked=True, inner=True)
def twice(x):
    return 2.0 * x

@kernel(inner=True)
def total(values):
    out = 0.0
    for x in values:
        out += twice(x)
    return out

@also_kernel
def shifted(values):
    return total(values) + 1.0

@kernel
def outer(values):
    if len(values) == 0:
        raise ValueError("nothing")
    return shifted(values)

JOBS = [specialized(f, np.zeros(1)) for f in (total, shifted, outer)]
"""
#: Runs the same program in another process, and prints which kernels were compiled there, and the result.
RUN = """
import json, sys
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(e.data["dispatcher"].py_func.__name__)
    def on_end(self, e):
        pass
event.register("numba:compile", Listener())
import numpy as np
{program}
print(json.dumps([sorted(set(compiled)), answer]))
"""


def run(program: str, folder: Path) -> list:
    source = RUN.format(program=program)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "some_kernels.py").write_text(KERNELS)
    return tmp_path


def test_a_kernel_read_from_disk_brings_those_that_it_calls_and_their_errors(folder: Path) -> None:
    program = """
import some_kernels as k
try:
    k.outer(np.zeros(0))
except ValueError as error:
    answer = [str(error), k.outer(np.arange(4.0))]
"""
    compiled, answer = run(program, folder)
    assert {"outer", "shifted", "total", "twice"} <= set(compiled)
    assert answer == ["nothing", 13.0]
    assert run(program, folder) == [[], ["nothing", 13.0]]


def test_kernels_of_the_installation_run_on_processors_that_are_newer_than_theirs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
from pathlib import Path
from milpbn.util import compiled as c
c.INSTALLED = Path(sys.path[1]) / "installed"
c._NEEDED = {needed}
import some_kernels as k
answer = [k.outer(np.arange(4.0)), k.outer._cache.count()]
"""
    x86 = platform.machine() == "x86_64"
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CPU_NAME", "x86-64-v3" if x86 else "generic")
        patch.setenv("NUMBA_CPU_FEATURES", "")
        compiled, _ = run(program.format(needed=()), folder)
        assert "outer" in compiled
    (folder / "installed").mkdir()
    for path in (folder / "cache").rglob("*.nbc"):
        path.rename(folder / "installed" / path.name)
    assert run(program.format(needed=()), folder) == [[], [13.0, 1]]
    assert not list(folder.glob("cache/**/*.nbc"))
    if x86:
        compiled, answer = run(program.format(needed=("no processor has this",)), folder)
        assert "outer" in compiled
        assert answer == [13.0, 1]


def test_other_processes_compile_what_this_one_has_not_begun(folder: Path) -> None:
    program = """
import some_kernels as k, time
from milpbn.util import compiling
compiling.all_cores, compiling.KERNELS_PER_HELPER = lambda: 2, 1
told = []
compilation = compiling.Compilation(k.JOBS, lambda *n: told.append(n))
compilation.start()
helpers = list(compilation._helpers)
while not all(j.is_kept() for j in k.JOBS) and helpers[0].poll() is None:
    time.sleep(0.05)
here = list(compiled)
assert compilation.ready(k.JOBS, lambda: False)
compilation.close()
answer = [here, len(helpers), k.outer(np.arange(4.0)), [h.poll() is not None for h in helpers]]
"""
    compiled, answer = run(program, folder)
    assert compiled == []
    assert answer == [[], 1, 13.0, [True]]


def test_kernels_run_without_compilation_where_that_is_switched_off(folder: Path) -> None:
    program = "import some_kernels as k; answer = k.outer(np.arange(4.0))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        source = program + "; assert not hasattr(k.outer, 'py_func')"
        assert run(source.replace("k.JOBS", ""), folder) == [[], 13.0]


def test_kernels_are_copied_into_their_callers_where_numba_has_other_internals(folder: Path) -> None:
    program = """
import sys
from numba.core.codegen import JITCodeLibrary
def hidden(self):
    if sys._getframe(1).f_globals["__name__"].startswith("milpbn"):
        raise AttributeError("_reload_init")
    return self.__dict__["hidden"]
JITCodeLibrary._reload_init = property(hidden, lambda self, value: self.__dict__.__setitem__("hidden", value))
import some_kernels as k
answer = k.outer(np.arange(4.0))
"""
    assert run(program, folder)[1] == 13.0
    assert run(program, folder) == [[], 13.0]


def test_an_inner_kernel_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="only other kernels"):
        products.sample_score(None, None, 0, 0)


def test_compilation_stops_when_asked_to() -> None:
    def square(x):  # type: ignore[no-untyped-def]
        return x * x

    compiled = kernel(square)
    assert not Compilation([specialized(compiled, 1.0)]).ready([specialized(compiled, 1.0)], lambda: True)
    assert not compiled.overloads


def test_a_job_names_types() -> None:
    one, other = (
        specialized(newton._count, np.zeros(2, dtype=bool)),
        specialized(newton._count, np.zeros(5, dtype=bool)),
    )
    assert one == other
    assert one.arguments == (typeof(np.zeros(1, dtype=bool)),)
    assert one.kernel is newton._count


def test_kernels_are_stamped_with_what_they_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    for compiled in (take_compiled_steps, heaviest_structure):
        stamp = source_stamp(compiled.py_func.__module__)
        assert f".{stamp[:16]}." in compiled._cache.path(()).name
    module = oracle.__name__
    reached = _reached(module)
    assert branching.__name__ in reached
    assert "milpbn.errors" not in reached
    assert newton.__name__ in _reached(frank_wolfe.__name__)
    before = source_stamp(module)
    source_stamp.cache_clear()
    assert source_stamp(module) == before
    for changed in (oracle, branching):
        monkeypatch.setattr(changed, "SOME_CONSTANT", 0.5, raising=False)
        source_stamp.cache_clear()
        assert source_stamp(module) != before
        monkeypatch.undo()
    source_stamp.cache_clear()


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], KernelCache]:
    """Return a function from a stamp of the sources to the cache of one kernel, as another process opens it.

    Instead of compiled code it keeps any object.
    """
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def opened(stamp: str) -> KernelCache:
        monkeypatch.setattr("milpbn.util.compiled.source_stamp", lambda module: stamp)
        files = KernelCache(newton._count)
        files._impl.check_cachable = lambda data: True
        files._impl.reduce = lambda data: data
        files._impl.rebuild = lambda context, data: data
        return files

    return opened


CONTEXT = newton._count.targetctx


def saved(files: KernelCache) -> list[str]:
    return sorted(path.name for path in files._folder.iterdir())


def test_a_process_killed_while_it_saves_a_kernel_leaves_no_wrong_code(
    entry: Callable[[str], KernelCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With numba's own order of writing, the new index named the file with the code of the old sources."""
    entry("old").save_overload(("key",), "old code")

    def kill(*arguments: object) -> None:
        raise SystemExit

    for killed_in in ("os.open", "os.replace"):
        files = entry("new")
        with monkeypatch.context() as patch:
            patch.setattr(killed_in, kill)
            with pytest.raises(SystemExit):
                files.save_overload(("key",), "new code")
        assert entry("new").load_overload(("key",), CONTEXT) is None
    assert entry("old").load_overload(("key",), CONTEXT) == "old code"
    files = entry("new")
    files.save_overload(("key",), "new code")
    assert files.load_overload(("key",), CONTEXT) == "new code"
    assert saved(files) == [files.path(("key",)).name]


def test_processes_that_save_code_for_different_types_at_once_keep_both(
    entry: Callable[[str], KernelCache],
) -> None:
    files = entry("stamp")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: files.save_overload((k,), f"code {k}"), range(20)))
    assert [files.load_overload((k,), CONTEXT) for k in range(20)] == [f"code {k}" for k in range(20)]
    assert files.count() == 20


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x05cmilpbn.util.compiled\nLost\n."], ids=["cut off", "lost name"]
)
def test_a_damaged_file_counts_as_none(entry: Callable[[str], KernelCache], content: bytes) -> None:
    """A new name of a record must not break the files of an older version, either."""
    files = entry("stamp")
    files.path(("key",)).parent.mkdir(parents=True, exist_ok=True)
    files.path(("key",)).write_bytes(content)
    assert files.load_overload(("key",), CONTEXT) is None
    files.save_overload(("key",), "code")
    assert files.load_overload(("key",), CONTEXT) == "code"


def test_a_cache_that_cannot_be_written_is_done_without(entry: Callable[[str], KernelCache]) -> None:
    files = entry("stamp")
    files.path(("key",)).mkdir(parents=True)  # a file of this name cannot be written
    files.save_overload(("key",), "code")
    assert files.load_overload(("key",), CONTEXT) is None


def test_without_a_folder_for_temporary_files_there_is_no_lock(monkeypatch):
    def refuse() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", refuse)
    assert _lock_file("a kernel") is None
