"""Connections to Dask clusters: workers on this machine, or a scheduler that somebody else has started."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from distributed import Client, LocalCluster
from distributed.comm import get_address_host_port
from distributed.utils import silence_logging_cmgr

from milpbn.distributed.dispatcher import DaskDispatcher
from milpbn.distributed.worker import installed_version
from milpbn.errors import InputError, SolverError
from milpbn.util.scratch import scratch_folder
from milpbn.version import __version__

#: Seconds to wait for a scheduler, and for the first worker on this machine.
CONNECT_SECONDS, START_SECONDS = 10, 120


@contextmanager
def dispatcher(workers: int | None, dask: object, threads: int) -> Iterator[DaskDispatcher]:
    """Yield a dispatcher over workers that are started now, or over those of a cluster that is there.

    Parameters
    ----------
    workers : int or None
        Number of processes to start on this machine; None for the workers of `dask`.
    dask : str or Client
        Address or file of a scheduler, or a client, which stays open.
    threads : int
        Threads of this process that go on if the cluster is lost.
    """
    with connected(workers, dask) as client:
        yield DaskDispatcher(client, threads)


@contextmanager
def connected(workers: int | None, dask: object) -> Iterator[Client]:
    """Yield a client; see `dispatcher`."""
    if workers is not None:
        with local_workers(workers) as client:
            yield client
    elif isinstance(dask, Client):
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


@contextmanager
def local_workers(count: int) -> Iterator[Client]:
    """Yield a connection to worker processes of one thread each on this machine, which end with the block.

    The scheduler runs in this process. The workers are processes of a session of their own, so that Ctrl-C in a
    terminal reaches this process alone; Dask's nannies replace workers that end, and all end if this process does.

    Raises
    ------
    SolverError
        If no worker starts.
    """
    with (
        scratch_folder() as folder,
        LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        log = folder / "workers.log"
        command = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address]
        command += ["--nworkers", str(count), "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        command += ["--death-timeout", str(START_SECONDS), "--local-directory", str(folder)]
        with log.open("w") as out:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            _wait_for_worker(client, started, log)
            yield client
        finally:
            _kill(started)


def _wait_for_worker(client: Client, started: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the first worker has started."""
    try:
        client.wait_for_workers(1, timeout=START_SECONDS)
    except TimeoutError:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["(empty)"]
        ended = "" if started.poll() is None else f" and ended with exit code {started.returncode}"
        raise SolverError(
            f"No worker started within {START_SECONDS} seconds{ended}; the last line of their log: {last[0]}"
        ) from None


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
    try:
        # A client that finds nothing would leave a thread behind that disturbs the next one.
        socket.create_connection(get_address_host_port(address), timeout=CONNECT_SECONDS).close()
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"--dask (dask) names {where!r}, where no Dask scheduler answers within {CONNECT_SECONDS} seconds "
            f"({type(error).__name__}: {error}); give its address, such as tcp://127.0.0.1:8786, or the path of its "
            "scheduler file."
        ) from None
    # What Dask logs of a lost connection are tracebacks.
    with silence_logging_cmgr(logging.CRITICAL), client:
        check_versions(client)
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
        if found != __version__:
            has = f"milpbn {found}" if isinstance(found, str) else f"no milpbn that can be imported ({found})"
            raise InputError(f"The Dask worker {worker} has {has}; install milpbn {__version__} there.")
