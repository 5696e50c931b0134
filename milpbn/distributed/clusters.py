"""Connections to Dask clusters: workers on this machine, or a scheduler that somebody else has started."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from distributed import Client, LocalCluster
from distributed.comm import get_address_host_port
from distributed.utils import silence_logging_cmgr

from milpbn.distributed.dispatcher import DaskDispatcher, LostError
from milpbn.distributed.worker import installed_version
from milpbn.errors import InputError, SolverError
from milpbn.util.memory import LEAST, format_bytes, memory_limit
from milpbn.util.scratch import scratch_folder
from milpbn.version import __version__

#: Seconds to wait for a scheduler, and that the workers on this machine wait for theirs.
CONNECT_SECONDS, START_SECONDS = 10, 120
#: What ``dask worker`` does, in a process that ends with the one of this number. With -P it imports nothing from the
#: current folder, which may be a checkout.
WORKERS = (
    "import sys; from milpbn.util.workers import begin; begin(int(sys.argv.pop(1))); "
    "from distributed.cli.dask_worker import main; main()"
)


@contextmanager
def dispatcher(
    workers: int | None, dask: object, threads: int, beside: str | os.PathLike[str] | None = None
) -> Iterator[DaskDispatcher]:
    """Yield a dispatcher over workers that are started now, or over those of a cluster that is there.

    Parameters
    ----------
    workers : int or None
        Number of processes to start on this machine; None for the workers of `dask`.
    dask : str or Client
        Address or file of a scheduler, or a client, which stays open.
    threads : int
        Threads of this process that go on if the cluster is lost.
    beside : path or None
        A file of the run; one about a part that is lost for good is written beside it.
    """
    if workers is None:
        with connected(dask) as client:
            yield DaskDispatcher(client, threads, beside=beside)
    else:
        share = share_of(workers)
        with local_workers(workers) as here:
            yield DaskDispatcher(here.client, threads, beside=beside, share=share, check=here.check)


@contextmanager
def connected(dask: object) -> Iterator[Client]:
    """Yield a client of a cluster that is there; see `dispatcher`."""
    if isinstance(dask, Client):
        yield dask
    else:
        with scheduler(str(dask)) as client:
            yield client


def check_cluster(dask: object) -> None:
    """Check early that a scheduler answers, and that its workers have this version of milpbn.

    Raises
    ------
    InputError
        If not; the sentence says what to do.
    """
    if isinstance(dask, Client):
        check_versions(dask)
    elif isinstance(dask, str):
        with scheduler(dask):
            pass
    elif dask is not None:
        raise InputError(
            f"dask must be the address or file of a scheduler or a distributed.Client, got a {type(dask).__name__}."
        )


def share_of(workers: int) -> int | None:
    """Return the bytes of each worker on this machine, and of this process, under the limit of the run; None without.

    Raises
    ------
    InputError
        If that is less than a process needs.
    """
    limit = memory_limit()
    if limit is None:
        return None
    share = limit // (workers + 1)
    if share < LEAST:
        raise InputError(
            f"--memory-limit (memory_limit) leaves {format_bytes(share)} to this process and each of {workers} workers "
            f"(--workers), which need {format_bytes(LEAST)} each; set at least {format_bytes((workers + 1) * LEAST)}, "
            "or start fewer workers."
        )
    return share


class LocalWorkers(NamedTuple):
    """A connection to worker processes on this machine, the process that replaces them, and their log."""

    client: Client
    nanny: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait for the first worker; SolverError if none starts."""
        try:
            self.client.wait_for_workers(1, timeout=START_SECONDS)
        except TimeoutError:
            raise SolverError(
                f"No worker has started on this machine within {START_SECONDS} seconds."
            ) from None

    def check(self) -> None:
        """Raise LostError if no worker is or will be there."""
        if self.nanny.poll() is not None:
            last = self.log.read_text(errors="replace").strip().splitlines()[-1:] or ["(empty)"]
            raise LostError(
                f"The workers have ended (exit code {self.nanny.returncode}; the last line of their log: {last[0]})"
            )


@contextmanager
def local_workers(count: int) -> Iterator[LocalWorkers]:
    """Begin to start worker processes of one thread each on this machine, which end with the block.

    The scheduler runs in this process. The workers are processes of a session of their own, so that Ctrl-C in a
    terminal reaches this process alone; Dask's nannies replace workers that end, and all end if this process does.
    """
    with (
        scratch_folder() as folder,
        LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        log = folder / "workers.log"
        command = [sys.executable, "-P", "-c", WORKERS, str(os.getpid()), cluster.scheduler_address]
        command += ["--nworkers", str(count), "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        command += ["--death-timeout", str(START_SECONDS), "--local-directory", str(folder)]
        with log.open("w") as out:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            yield LocalWorkers(client, started, log)
        finally:
            _kill(started)


def _kill(started: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started: they have nothing to lose."""
    try:
        parent = psutil.Process(started.pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    started.wait()


@contextmanager
def scheduler(where: str) -> Iterator[Client]:
    """Yield a connection to a scheduler.

    Parameters
    ----------
    where : str
        Its address, such as ``tcp://node7:8786``, or the path of the file that it wrote (``dask scheduler
        --scheduler-file``).

    Raises
    ------
    InputError
        If there is no scheduler, or one of its workers has another version of milpbn or none.
    """
    address = _address_in(where) if os.path.exists(where) else where
    # What Dask logs of a lost connection are tracebacks.
    with silence_logging_cmgr(logging.CRITICAL), ExitStack() as stack:
        try:
            # A client that finds nothing would leave a thread behind that disturbs the next one.
            socket.create_connection(get_address_host_port(address), timeout=CONNECT_SECONDS).close()
            client = stack.enter_context(Client(address, timeout=CONNECT_SECONDS, set_as_default=False))
            check_versions(client)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(
                f"--dask (dask) names {where!r}, where no Dask scheduler answers within {CONNECT_SECONDS} seconds "
                f"({type(error).__name__}: {error}); give its address, such as tcp://127.0.0.1:8786, or the path of "
                "its scheduler file."
            ) from None
        yield client


def _address_in(path: str) -> str:
    """Return the address in a scheduler file."""
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"--dask (dask) names the file {path!r}, which is no scheduler file ({type(error).__name__}: {error}); "
            "name the one that `dask scheduler --scheduler-file` wrote."
        ) from None


def check_versions(client: Client) -> None:
    """Check that all workers have this version of milpbn; Dask itself only warns about other versions.

    Raises
    ------
    InputError
        If one of them has another version or none.
    """
    for worker, found in client.run(installed_version, on_error="return").items():
        if found != __version__ and not isinstance(found, OSError):  # it has ended meanwhile
            has = f"milpbn {found}" if isinstance(found, str) else f"no milpbn that can be imported ({found})"
            raise InputError(f"The Dask worker {worker} has {has}; install milpbn {__version__} there.")
