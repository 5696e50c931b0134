"""The build backend: setuptools, and the kernels of the default search compiled into the wheel.

pip installs numba and NumPy into the environment of the build, and asks for the wheel's metadata before it downloads
the dependencies. The kernels are compiled meanwhile, in the background. `build_py` waits for them and adds them as
`milpbn/kernels/*.nbc`. They are a cache: `milpbn.util.compiled` uses them only where sources, Python, numba and
processor fit, so a wheel with kernels can still be installed everywhere. An editable installation has none, because
every edit of a kernel would make them useless. With MILPBN_NO_KERNELS=1 nothing is compiled.

Run as a program, in one of several processes side by side, this file compiles the kernels.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Packages that run kernels or are compiled into them. Others are imported by the same modules, but never called here.
NEEDED = ("numba", "numpy", "threadpoolctl")
POSIX = os.name == "posix"
#: The most processes that compile side by side, and the time in seconds that they may take together.
MOST_PROCESSES, LIMIT = 4, 600.0


def wanted() -> bool:
    """Return whether kernels are to be compiled."""
    return os.environ.get("MILPBN_NO_KERNELS", "0") in ("", "0")


def start(told: int | None = None, **options: Any) -> list[subprocess.Popen[str]]:
    """Start the processes that compile; those started earlier for the same sources share the work with them."""
    library = _library()
    begun = library.is_dir()
    if not begun:
        _copy(library)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(library / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    # For any processor of x86-64 since 2015; `milpbn.util.compiled` asks for the same.
    if "NUMBA_CPU_NAME" not in os.environ:
        x86 = platform.machine().lower() in ("x86_64", "amd64")
        environment |= {"NUMBA_CPU_NAME": "x86-64-v3" if x86 else "generic", "NUMBA_CPU_FEATURES": ""}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(library), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, __file__, str(library), *([] if told is None else [str(told)])]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # One more process waits for those that run, and takes over if they end. Without locks none can share the work.
    count = 1 if begun or not POSIX else min(cores, MOST_PROCESSES)
    return [
        subprocess.Popen(command, env=environment, text=True, stdin=subprocess.DEVNULL, **options)
        for _ in range(count)
    ]


def add_kernels(built: Path) -> None:
    """Compile the kernels, and put them into the tree of the wheel."""
    folder = built / "milpbn" / "kernels"
    shutil.rmtree(folder, ignore_errors=True)  # those of an earlier build
    processes: list[subprocess.Popen[str]] = []
    try:
        processes = start(stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        errors = [process.communicate(timeout=LIMIT)[1].splitlines()[-1:] for process in processes]
        folder.mkdir(parents=True)
        for path in (_library() / "cache").rglob("*.nbc"):
            shutil.copy(path, folder)
        if all(process.returncode for process in processes):  # one that ended well has seen all kernels
            raise RuntimeError(" ".join(max(errors)) or "the processes were killed")
    except Exception as error:  # numba, the compiler or the disk failed; the package works without
        print(
            f"The kernels could not be compiled, so the first run will compile them: {error}.",
            file=sys.stderr,
        )
    finally:
        for process in processes:
            process.kill()
        for path in ROOT.glob("build/kernels-*"):
            shutil.rmtree(path, ignore_errors=True)


def _library() -> Path:
    """Return the folder in which kernels are compiled; its name is a hash of all sources."""
    digest = hashlib.sha256()
    for folder in ("milpbn", "cli", "instances"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return ROOT / "build" / f"kernels-{digest.hexdigest()[:16]}"


def _copy(library: Path) -> None:
    """Copy the sources as they are installed, since the names of kernels have hashes of them."""
    part = library.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)  # of a build that was killed
    layout = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    outside = layout["tool"]["setuptools"]["package-dir"]
    for package, folder in {"milpbn": "milpbn", **outside}.items():
        target = part.joinpath(*package.split("."))
        shutil.copytree(
            ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
    part.rename(library)


class _Anything:
    """What a package that is not there has under any name; constants that it computes are 0."""

    def __init__(self, *arguments: object, **named: object) -> None:
        pass

    def __float__(self) -> float:
        return 0.0


class _Unneeded(MetaPathFinder, Loader):
    """Finds a package that is not installed in the environment of the build; its names have no meaning."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] in ("pandas", "scipy"):
            return ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        def named(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (_Anything,), {})

        module.__getattr__ = named  # type: ignore[method-assign]


def compile_here(parent: int | None) -> None:
    """Compile the kernels that no other process has begun, until the process `parent` has ended."""
    import numba  # noqa: F401  first: it looks at the version of SciPy if there is one

    if PathFinder.find_spec("pandas") is None or PathFinder.find_spec("scipy") is None:
        sys.meta_path.insert(0, _Unneeded())
    from milpbn.solving.warm_up import of_default_search

    jobs = of_default_search()
    for claimed in (False, True):  # at last, wait for those that other processes compile
        for job in jobs:
            if not job.is_kept() and (claimed or not job.is_claimed()):
                if parent is not None:
                    os.kill(parent, 0)
                job()


if __name__ == "__main__":
    import gc

    gc.disable()  # it takes a thirtieth of the time
    compile_here(int(sys.argv[2]) if len(sys.argv) > 2 else None)
else:
    from setuptools import build_meta
    from setuptools.build_meta import *  # noqa: F403
    from setuptools.command.build_py import build_py

    def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
        """Return what setuptools needs, and the packages that compile kernels, in the project's versions."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        compilers = [line for line in project["dependencies"] if line.startswith(NEEDED)]
        return build_meta.get_requires_for_build_wheel(config_settings) + (compilers if wanted() else [])

    def prepare_metadata_for_build_wheel(folder: str, config_settings: Any = None) -> str:
        """Write the metadata, and begin to compile; pip resolves and downloads the dependencies meanwhile."""
        name = build_meta.prepare_metadata_for_build_wheel(folder, config_settings)
        if wanted() and POSIX:
            with suppress(OSError):
                start(os.getppid(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return name

    class BuildWithKernels(build_py):
        """`build_py` that adds the kernels, but not to an editable installation."""

        def run(self) -> None:
            """Copy the sources, then add the kernels."""
            super().run()
            if wanted() and not self.editable_mode:
                add_kernels(Path(self.build_lib))
