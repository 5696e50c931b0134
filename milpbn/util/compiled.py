"""Compiled kernels: each is compiled once, called through its address, and cached on disk until its sources change.

numba copies every called function into its callers, and optimises the copy in each of them; that was half of all
compilation. Here a kernel calls another one as a separate function. Its address is looked up when the caller is read
from disk. Only `linked` kernels, the few lines of an inner loop, are copied.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding as llvm
import numba
from numba import njit, typeof
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.imputils import user_function
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from milpbn.errors import InputError
from milpbn.util.atomic import atomic_path
from milpbn.util.clock import Stopwatch
from milpbn.util.locks import can_lock, lock

T = TypeVar("T", bound=Callable[..., Any])

#: Code that is compiled into kernels is in modules with one of these words.
_COMPILED = re.compile(r"@kernel|@overload|@intrinsic|@register_jitable")
_RECORD = re.compile(r"^class \w+\((?:NamedTuple|Record)\):.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
#: The line of such a class, and those of its fields.
_FIELD = re.compile(r"^class .*|^    \w+: .*", re.MULTILINE)
_CONSTANTS = (bool, int, float, str, tuple)
#: Kernels that were compiled at the installation (`build_backend/with_kernels.py`); a clone has none.
INSTALLED = Path(__file__).parents[1] / "kernels"
#: What the processor needs to run those of x86-64, which are compiled for x86-64-v3.
_NEEDED = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
#: Whether the user has turned on the SLP vectoriser of all kernels (NUMBA_SLP_VECTORIZE).
_SLP = numba.config.SLP_VECTORIZE
#: When this process compiled kernels, or waited for another process that did.
COMPILING = Stopwatch()
#: All kernels, by module and name.
_kernels: dict[tuple[str, str], Any] = {}


def kernel(
    function: Any = None, *, linked: bool = False, inner: bool = False, slp: bool = False, **options: Any
) -> Any:
    """Decorate a function: it is compiled at its first call or read from disk, and releases the GIL while it runs.

    A `linked` function is copied into every kernel that calls it, which is for a few lines in an inner loop. An `inner`
    one is called by kernels only: the code that unpacks Python's arguments is left out, which is often larger than the
    kernel itself. With `slp`, operations on adjacent numbers that are written one by one become vector instructions
    (LLVM's superword-level parallelism). numba leaves it off, because LLVM has had errors in it, mostly with integers
    and conditions: it is for kernels of plain arithmetic, which tests compare with numpy. Further options are those of
    `numba.njit`.
    """
    if function is None:
        return lambda function: kernel(function, linked=linked, inner=inner, slp=slp, **options)
    compiled: Any = njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options)(function)
    if compiled is function:  # with NUMBA_DISABLE_JIT
        return function
    _kernels[function.__module__, function.__name__] = compiled
    with contextlib.suppress(RuntimeError):  # there is no folder for the cache
        compiled._cache = KernelCache(compiled)
    compiled.compile = _compile_once(compiled, linked, slp)
    if inner:

        def add_overload(result: Any) -> None:
            # Other kernels can call it now, but not Python.
            compiled.overloads[tuple(result.signature.args)] = result

        compiled.add_overload, compiled._compile_for_args = add_overload, _refuse
    return compiled


def _refuse(*arguments: object, **named: object) -> None:
    raise TypeError("only other kernels can call this kernel; from Python, call its py_func")


def also_kernel(function: T) -> T:
    """Decorate a Python function that is also compiled as a kernel when another kernel calls it."""
    compiled = kernel(function, inner=True)
    if compiled is not function:
        compiled.typingctx.insert_global(function, compiled._type)
    return function


class KernelCache(FunctionCache):
    """The compiled code of one kernel on disk, in one file for each list of argument types.

    The name of a file has hashes of all that its code depends on. numba's own files have numbers that are listed in an
    index: if a process is killed between writing both, or if two write at once, the index can name other code.
    """

    def __init__(self, compiled: Any) -> None:
        super().__init__(compiled.py_func)
        self._module, self._target = compiled.py_func.__module__, compiled.targetctx
        self._stem = f"{self._module}.{compiled.py_func.__qualname__}".replace("<", "").replace(">", "")

    def path(self, arguments: tuple[Any, ...]) -> Path:
        """Return the file with the code for some types of arguments."""
        return self._paths(arguments)[0]

    def _paths(self, arguments: tuple[Any, ...]) -> list[Path]:
        """Return the file that this machine writes, and those that it may read instead."""
        own = self._target.codegen().magic_tuple()
        types = _short_hash(f"{arguments!r} {self._py_func.__code__.co_code!r}")
        places = [(self._folder, own), (INSTALLED, own), *((INSTALLED, each) for each in _installed(own[0]))]
        return [folder / f"{self._prefix(machine)}.{types}.nbc" for folder, machine in places]

    def _prefix(self, machine: tuple[str, ...]) -> str:
        key = (sys.implementation.cache_tag, numba.__version__, machine)
        return f"{self._stem}.{self._sources}.{_short_hash(repr(key))}"

    def has(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether the code for some types of arguments is on disk."""
        return any(path.exists() for path in self._paths(arguments))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for some types of arguments; None if it is not there. numba calls this."""
        target_context.refresh()
        for path in self._paths(sig):
            try:
                data = pickle.loads(path.read_bytes())
            except Exception:  # the file may be damaged; almost any exception can follow
                continue
            return self._impl.rebuild(target_context, data)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the code for some types of arguments, and remove that of other sources. numba calls this.

        Where nothing can be written, the kernel is compiled again in every process.
        """
        if not self._impl.check_cachable(data):
            return
        with contextlib.suppress(OSError, InputError):
            self._impl.locator.ensure_cache_path()
            with atomic_path(self.path(sig)) as temporary:
                temporary.write_bytes(dumps(self._impl.reduce(data)))
            for old in self._folder.glob(f"{self._stem}.*.nbc"):
                if not old.name.startswith(f"{self._stem}.{self._sources}."):
                    old.unlink()

    def count(self) -> int:
        """Return for how many lists of argument types this machine has the code on disk."""
        found = (found for path in self._paths(()) for found in path.parent.glob(f"{path.stem[:-16]}*.nbc"))
        return len({path.stem[-16:] for path in found})

    @property
    def _folder(self) -> Path:
        return Path(self.cache_path)

    @property
    def _sources(self) -> str:
        return source_stamp(self._module)[:16]


@cache
def _installed(triple: str) -> list[tuple[str, str, str]]:
    """Return for which processors, other than exactly this one, kernels of the installation run here."""
    if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
        return []  # the user decides
    if not triple.startswith("x86_64"):
        return [(triple, "generic", "")]
    has = llvm.get_host_cpu_features()
    return [(triple, "x86-64-v3", "")] if all(has.get(need) for need in _NEEDED) else []


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Specialization(NamedTuple):
    """A kernel for given argument types; `arguments` are numba's types."""

    module: str
    name: str
    arguments: tuple[Any, ...]

    @property
    def kernel(self) -> Any:
        """The kernel; its module is imported if necessary."""
        import_module(self.module)
        return _kernels[self.module, self.name]

    def __call__(self) -> None:
        """Read the code from disk, or compile it. numba calls this before it reads a kernel that calls this one."""
        self.kernel.compile(self.arguments)

    def is_loaded(self) -> bool:
        """Return whether the code is loaded in this process."""
        return self.arguments in self.kernel.overloads

    def is_kept(self) -> bool:
        """Return whether the code is in the cache on disk."""
        cached = self.kernel._cache
        return isinstance(cached, KernelCache) and cached.has(self.arguments)

    def is_claimed(self) -> bool:
        """Return whether another process is compiling it."""
        with self.claimed(wait=False) as mine:
            return not mine

    @contextlib.contextmanager
    def claimed(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock on the compilation, or with `wait` false try it; yield whether this process has it.

        It is a lock on an empty file (`milpbn.util.locks`), so it ends with the process. Where there are no locks, or
        no cache, every process has it: two may compile the same kernel, and the file written last stays.
        """
        folder = self.kernel._cache.cache_path
        file = None if folder is None else _lock_file(f"{folder} {self!r}")
        if file is None:
            yield True
            return
        try:
            yield lock(file, wait=wait)
        finally:
            os.close(file)


def specialized(compiled: Any, *arguments: Any) -> Specialization:
    """Return the `Specialization` of a kernel (or of an `also_kernel` function) for the types of some arguments."""
    function = getattr(compiled, "py_func", compiled)
    return Specialization(function.__module__, function.__name__, tuple(map(typeof, arguments)))


def are_kept() -> bool:
    """Return whether kernels are compiled and cached on disk, where other processes find them."""
    return can_lock() and any(k._cache.cache_path for k in _kernels.values())


def count_kept() -> int:
    """Return how many kernels of the imported modules are in the cache on disk, one for each list of argument types."""
    return sum(k._cache.count() for k in _kernels.values() if isinstance(k._cache, KernelCache))


def _lock_file(what: str) -> int | None:
    """Open the lock file of this name, and return its descriptor; None if that is not possible."""
    if not can_lock():
        return None
    try:
        folder = Path(
            tempfile.gettempdir(), f"milpbn-{os.getuid()}"
        )  # raises OSError where no folder can be written
        folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(folder / _short_hash(what), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


@contextlib.contextmanager
def _with_slp(slp: bool) -> Iterator[None]:
    """Compile with LLVM's SLP vectoriser, which is a setting of all of numba; the caller has its compiler lock."""
    before = numba.config.SLP_VECTORIZE
    numba.config.SLP_VECTORIZE = slp or _SLP  # not that of a kernel that calls this one
    try:
        yield
    finally:
        numba.config.SLP_VECTORIZE = before


def _compile_once(compiled: Any, linked: bool, slp: bool) -> Callable[[Any], Any]:
    """Return the `compile` method of a kernel: one process at a time compiles it, and others call it by its address."""
    function, compile_ = compiled.py_func, compiled.compile

    def compile_once(signature: Any) -> Any:
        arguments, _ = normalize_signature(signature)
        this = Specialization(function.__module__, function.__name__, tuple(arguments))
        # The lock of this process is always taken before the lock file, so that threads cannot deadlock.
        with global_compiler_lock:
            if this.is_loaded():
                return compiled.overloads[this.arguments].entry_point
            with contextlib.nullcontext() if this.is_kept() else COMPILING, this.claimed(), _with_slp(slp):
                entry = compile_(this.arguments)
            if not linked:
                # Where another numba has other internals, callers get a copy, as numba does it.
                with contextlib.suppress(AttributeError, KeyError, TypeError):
                    _call_by_address(this, compiled)
            return entry

    return compile_once


def _call_by_address(this: Specialization, compiled: Any) -> None:
    """Make other kernels call this one by its address, where numba would link a copy of it."""
    result = compiled.overloads[this.arguments]
    # Before anything is changed: `call` needs this, and only numba >= 0.63 has it.
    _ = result.library._reload_init
    # The cached code of callers contains this name. The name that numba gives differs between processes.
    symbol = f"{this.module}.{this.name}.{_short_hash(repr(this.arguments))}"
    llvm.add_symbol(symbol, result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
    named = copy(result.fndesc)
    named.mangled_name = symbol
    plain = user_function(named, ())

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        context.active_code_library._reload_init.add(this)
        return plain(context, builder, signature, arguments)

    call.signature, call.libs = plain.signature, ()  # type: ignore[attr-defined]
    implementations = compiled.targetctx._defns[result.entry_point]
    implementations.versions[:] = [(plain.signature, call)]
    implementations._cache.clear()


@cache
def source_stamp(module: str) -> str:
    """Return a hash of all sources and constants that may be compiled into the kernels of a module of the package.

    numba would compile a kernel again only after its own file has changed. But code and constants from other files are
    compiled into it: from the modules whose kernels it may call, and from the records that kernels take as arguments.
    All these modules must be imported.
    """
    digest = hashlib.sha256(_records().encode())
    for name in sorted(_reached(module)):
        digest.update(name.encode())
        digest.update(_source(name).encode())
        for key, value in sorted(vars(sys.modules[name]).items()):
            # A tuple of functions or objects has their addresses in its representation; it is not a constant.
            if isinstance(value, _CONSTANTS) and not key.startswith("__") and " at 0x" not in repr(value):
                digest.update(f"{key}={value!r};".encode())
    return digest.hexdigest()


def _reached(module: str) -> set[str]:
    """Return the names of the modules whose kernels a module's kernels may call, its own name included."""
    package = __name__.partition(".")[0]
    reached, waiting = {module}, [module]
    while waiting:
        for value in vars(sys.modules[waiting.pop()]).values():
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if not isinstance(name, str) or name in reached or name not in sys.modules:
                continue
            if name.partition(".")[0] == package and _COMPILED.search(_source(name)):
                reached.add(name)
                waiting.append(name)
    return reached


@cache
def _source(module: str) -> str:
    """Return the source of a module; empty if it has no file."""
    path = getattr(sys.modules[module], "__file__", None)
    return "" if path is None else Path(path).read_text(encoding="utf-8")


@cache
def _records() -> str:
    """Return the fields of all named tuples and records of the package, which kernels read by position."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    found = (match.group() for text in texts for match in _RECORD.finditer(text))
    return "\n".join(line for record in found for line in _FIELD.findall(record))
