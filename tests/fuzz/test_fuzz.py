"""A share of the campaign in the ordinary suite: fresh hostile inputs for every reader; ``--fuzz SECONDS`` for more."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from .campaign import Feeder, limited, save_failures
from .readers import READERS, Reader
from .shop import make_shop

#: Seconds of CPU time of one input here, where a kernel may have to be compiled; the campaign grants 5.
PATIENCE = 60.0


@pytest.fixture(scope="session")
def fuzz_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("fuzz_shop"))


@pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])
def test_hostile_input_ends_in_sentences(
    fuzz_shop: Path,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
    reader: Reader,
) -> None:
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    seed = secrets.randbits(32)
    (tmp_path / "work").mkdir()
    feeder = Feeder(reader, fuzz_shop, tmp_path / "work", seed)
    seconds = pytestconfig.getoption("--fuzz") * reader.share / sum(other.share for other in READERS)
    whole = reader.name.startswith("milpbn ")  # a whole command line may start threads and compile
    with limited(memory=not whole):
        for data in feeder.pool:
            feeder.try_input(data, "a valid file", PATIENCE)
        feeder.run(seconds, least=3, patience=PATIENCE)
    saved = [str(place) for place in save_failures(feeder.count.failures, tmp_path / "failures")]
    said = "\n\n".join(failure.what for failure in feeder.count.failures[:3])
    assert not saved, f"seed {seed}, {reader.name}; inputs in {', '.join(saved)}\n{said}"
    assert feeder.count.inputs >= 3


@pytest.mark.parametrize("form", ["text", "json", "npz", "gzip", "bytes"])
def test_inputs_follow_from_the_seed(fuzz_shop: Path, tmp_path: Path, form: str) -> None:
    reader = next(reader for reader in READERS if reader.form == form)

    def inputs(seed: int) -> list[bytes]:
        feeder = Feeder(reader, fuzz_shop, tmp_path, seed)
        return [feeder.next_input()[0] for _ in range(30)]

    assert inputs(1) == inputs(1) != inputs(2)
    assert len(set(inputs(3))) > 20


def test_a_reader_that_fails_is_caught(fuzz_shop: Path, tmp_path: Path) -> None:
    from milpbn.errors import InputError

    def read(path: Path, shop: Path) -> None:
        text = path.read_bytes()
        if len(text) % 3 == 0:
            raise KeyError("x")
        if len(text) % 3 == 1:
            raise InputError("This names nothing.")

    feeder = Feeder(Reader("broken", "input", "text", ("=abc",), read), fuzz_shop, tmp_path, 5)
    with limited(memory=False):
        feeder.run(60, least=40, most=40)
    kinds = {failure.what.split(" ", 1)[0] for failure in feeder.count.failures}
    assert kinds == {"KeyError", "Unsound"}
    assert len(save_failures(feeder.count.failures, tmp_path / "failures")) == 2


def endless(path: Path, shop: Path) -> None:
    while True:  # signals are handled between its steps
        pass


@pytest.mark.parametrize(
    ("read", "patience", "failure"),
    [
        (endless, 0.2, "Hang"),
        (lambda path, shop: bytearray(3 << 30), PATIENCE, "MemoryError"),
    ],
    ids=["endless", "greedy"],
)
def test_a_reader_that_takes_all_time_or_memory_is_stopped(
    fuzz_shop: Path, tmp_path: Path, read: Callable[[Path, Path], object], patience: float, failure: str
) -> None:
    feeder = Feeder(Reader("bad", "input", "text", ("=abc",), read), fuzz_shop, tmp_path, 5)
    with limited(memory=failure == "MemoryError"):
        assert feeder.try_input(b"abc", patience=patience) is None
    assert feeder.count.failures[0].what.startswith(failure)
