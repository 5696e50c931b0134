"""Compiled kernels: each is compiled once, called through its address, and cached on disk until its sources change.

numba copies every called function into its callers, and optimises the copy in each of them; that was half of all
compilation. Here a kernel calls another one as a separate function. Its address is looked up when the caller is read
from disk. Only `linked` kernels, the few lines of an inner loop, are copied.

numba caches a compiled function until the file with its source changes. But code and constants from other files are
compiled into it, so after an upgrade that changes only such a file, the old code would still run. So every kernel is
cached under a hash of the modules whose kernels it may call, of their constants, and of the records that kernels take
as arguments.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding as llvm
from numba import njit, typeof
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import user_function
from numba.core.sigutils import normalize_signature

from milpbn.util.clock import Stopwatch
from milpbn.util.locks import can_lock, lock

T = TypeVar("T", bound=Callable[..., Any])

#: Code that is compiled into kernels is in modules with one of these words.
_COMPILED = re.compile(r"@kernel|@overload|@register_jitable")
_RECORD = re.compile(r"^class \w+\((?:NamedTuple|Record)\):.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_CONSTANTS = (bool, int, float, str, tuple)


def kernel(function: Any = None, *, linked: bool = False, inner: bool = False, **options: Any) -> Any:
    """Decorate a function: it is compiled at its first call or read from disk, and releases the GIL while it runs.

    Parameters
    ----------
    function : callable
        A function that numba can compile.
    linked : bool
        Copy the function into every kernel that calls it. Use this for a few lines in an inner loop.
    inner : bool
        Only kernels call the function. The code that unpacks Python's arguments is left out; it is often larger than
        the kernel itself.
    **options
        Further options of `numba.njit`.
    """
    if function is None:
        return lambda function: kernel(function, linked=linked, inner=inner, **options)
    options = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **options}
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder for the cache
        compiled = njit(**options)(function)
    if isinstance(compiled, Dispatcher):  # with NUMBA_DISABLE_JIT it is the function itself
        _take_over(compiled, linked, inner)
    return compiled


def _take_over(compiled: Any, linked: bool, inner: bool) -> None:
    """Replace numba's way to compile a kernel, to cache it, and to call it from other kernels and from Python."""
    function = compiled.py_func
    _kernels[function.__module__, function.__name__] = compiled
    # If the attributes are missing (another numba, no writable folder), numba's check of the file's age remains.
    with contextlib.suppress(AttributeError):
        compiled._cache._cache_file._source_stamp = Stamp(function.__module__)
        _make_safe(compiled._cache._cache_file)
    compiled.compile = _Once(compiled, linked)
    if inner:

        def add_overload(result: Any) -> None:
            compiled.overloads[tuple(result.signature.args)] = (
                result  # but do not make it callable from Python
            )

        compiled.add_overload, compiled._compile_for_args = add_overload, _refuse


def _make_safe(kept: Any) -> None:
    """Make a kernel's files in the cache safe against processes that write at once, are killed, or cannot write.

    numba writes the index first, and then the file that it names. If a process is killed in between, or if two write
    the code for other argument types at once, the index can name a file with other code.

    Parameters
    ----------
    kept : numba.core.caching.IndexDataCacheFile
        The files of one kernel; the methods of this object are replaced.
    """
    load, load_index = kept.load, kept._load_index

    def save(key: Any, data: Any) -> None:
        # Where nothing can be written, the kernel is compiled again in every process.
        with contextlib.suppress(OSError), _locked(kept._index_path):
            index = kept._load_index()
            taken = set(index.values())
            name = index.get(key) or next(n for n in map(kept._data_name, count(1)) if n not in taken)
            kept._save_data(name, data)
            if key not in index:
                kept._save_index({**index, key: name})

    kept.save, kept._load_index, kept.load = save, _or(load_index, {}), _or(load, None)


def _or(read: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
    """Return a function that returns `nothing` for files that cannot be read, as after a record was renamed."""

    def read_or_nothing(*arguments: Any) -> Any:
        try:
            return read(*arguments)
        except Exception:  # the data may be damaged, or from another version; almost any exception can follow
            return copy(nothing)

    return read_or_nothing


def also_kernel(function: T) -> T:
    """Decorate a Python function that is also compiled as a kernel when another kernel calls it."""
    compiled = kernel(function, inner=True)
    if compiled is not function:
        compiled.typingctx.insert_global(function, compiled._type)
    return function


class Specialization(NamedTuple):
    """A kernel for given argument types.

    Attributes
    ----------
    module, name : str
        Module and name of the kernel.
    arguments : tuple of numba types
        Types of the arguments.
    """

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
        with contextlib.suppress(AttributeError, OSError):
            key = cached._index_key(self.arguments, self.kernel.targetctx.codegen())
            return key in cached._cache_file._load_index()
        return False

    def is_claimed(self) -> bool:
        """Return whether another process is compiling it."""
        with _claimed(self, wait=False) as mine:
            return not mine


def are_kept() -> bool:
    """Return whether kernels are compiled and cached on disk, where other processes find them."""
    return can_lock() and any(getattr(k._cache, "_cache_path", None) for k in _kernels.values())


def count_kept() -> int:
    """Return how many kernels of the imported modules are in the cache on disk, one for each list of argument types."""
    count = 0
    for compiled in _kernels.values():
        with contextlib.suppress(AttributeError, OSError):
            _, *own = compiled._cache._index_key((), compiled.targetctx.codegen())
            count += sum(list(key[1:]) == own for key in compiled._cache._cache_file._load_index())
    return count


def specialized(compiled: Any, *arguments: Any) -> Specialization:
    """Return the `Specialization` of a kernel (or of an `also_kernel` function) for the types of some arguments."""
    function = getattr(compiled, "py_func", compiled)
    return Specialization(function.__module__, function.__name__, tuple(map(typeof, arguments)))


#: When this process compiled kernels, or waited for another process that did.
COMPILING = Stopwatch()
#: All kernels, by module and name.
_kernels: dict[tuple[str, str], Any] = {}


class _Once:
    """The `compile` method of a kernel: one process at a time compiles it, and other kernels call it by its address.

    Parameters
    ----------
    compiled : Dispatcher
        The kernel.
    linked : bool
        The kernel is copied into its callers instead.
    """

    def __init__(self, compiled: Any, linked: bool) -> None:
        self._compiled, self._linked, self._compile = compiled, linked, compiled.compile

    def __call__(self, signature: Any) -> Any:
        arguments, _ = normalize_signature(signature)
        compiled, function = self._compiled, self._compiled.py_func
        this = Specialization(function.__module__, function.__name__, tuple(arguments))
        # The lock of this process is always taken before the lock file, so that threads cannot deadlock.
        with global_compiler_lock:
            if this.arguments in compiled.overloads:
                return compiled.overloads[this.arguments].entry_point
            with contextlib.nullcontext() if this.is_kept() else COMPILING, _claimed(this):
                entry = self._compile(signature)
            if not self._linked:
                # Where another numba has other internals, callers get a copy, as numba does it.
                with contextlib.suppress(AttributeError, KeyError, TypeError):
                    _call_by_address(this, compiled)
            return entry


def _call_by_address(this: Specialization, compiled: Any) -> None:
    """Make other kernels call this one by its address, where numba would link a copy of it."""
    result = compiled.overloads[this.arguments]
    # Before anything is changed: `call` needs this, and only numba >= 0.63 has it.
    _ = result.library._reload_init
    # The cached code of callers contains this name. The name that numba gives differs between processes.
    symbol = f"{this.module}.{this.name}.{hashlib.sha256(repr(this.arguments).encode()).hexdigest()[:16]}"
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


def _refuse(*arguments: object, **named: object) -> None:
    raise TypeError("only other kernels can call this kernel; from Python, call its py_func")


def _claimed(this: Specialization, *, wait: bool = True) -> contextlib.AbstractContextManager[bool]:
    """Hold the lock on the compilation of a kernel; the context is whether this process has it.

    With `wait` false, the lock is only tried.
    """
    folder = getattr(this.kernel._cache, "_cache_path", None)
    return contextlib.nullcontext(True) if folder is None else _locked(f"{folder} {this!r}", wait=wait)


@contextlib.contextmanager
def _locked(what: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of this name; yield whether this process has it, True also where there are no locks.

    It is a lock on an empty file (`milpbn.util.locks`), so it ends with the process.
    """
    file = _lock_file(what)
    if file is None:
        yield True
        return
    try:
        yield lock(file, wait=wait)
    finally:
        os.close(file)


def _lock_file(what: str) -> int | None:
    """Open the lock file of this name, and return its descriptor; None if that is not possible."""
    if not can_lock():  # two processes may compile the same kernel; the file written last stays
        return None
    name = hashlib.sha256(what.encode()).hexdigest()[:32]
    folder = Path(tempfile.gettempdir(), f"milpbn-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


class Stamp:
    """The hash `source_stamp` of a module, computed at the first use, when all modules that it calls are imported."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __eq__(self, other: object) -> bool:
        return source_stamp(self.module) == (
            source_stamp(other.module) if isinstance(other, Stamp) else other
        )

    def __hash__(self) -> int:
        return hash(source_stamp(self.module))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (source_stamp(self.module),)


@cache
def source_stamp(module: str) -> str:
    """Return a hash of all sources and constants that may be compiled into the kernels of a module of the package.

    Parameters
    ----------
    module : str
        The module's name in `sys.modules`.
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
    """Return the definitions of all named tuples and records of the package, whose fields kernels read by position."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[1].rglob("*.py")))
    return "".join(match.group() for text in texts for match in _RECORD.finditer(text))
