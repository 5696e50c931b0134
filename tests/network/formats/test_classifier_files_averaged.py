"""The file of an average: exact round trips, a sentence for every defect, and who refuses it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.network import (
    AveragedClassifier,
    Classifier,
    load_any_classifier,
    load_classifier,
    read_structure,
    save_classifier,
)


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(11, samples=70)


@pytest.fixture
def saved(data, make_structure, tmp_path):
    members = [
        Classifier.fit(data, make_structure(data.names, seed), 0.3, {"bound": seed}) for seed in (4, 5)
    ]
    save_classifier(AveragedClassifier(tuple(members)), tmp_path / "average.json")
    return tmp_path / "average.json"


def test_round_trip_is_bit_exact(data, make_structure, saved):
    loaded = load_any_classifier(saved)
    assert isinstance(loaded, AveragedClassifier)
    assert [member.structure for member in loaded.members] == [make_structure(data.names, s) for s in (4, 5)]
    assert [member.provenance["bound"] for member in loaded.members] == [4, 5]
    again = AveragedClassifier(
        tuple(Classifier.fit(data, make_structure(data.names, s), 0.3) for s in (4, 5))
    )
    assert np.array_equal(loaded.predict_log_posterior(data), again.predict_log_posterior(data))
    first = saved.read_bytes()
    save_classifier(loaded, saved)
    assert saved.read_bytes() == first


def members(change):
    def apply(document):
        change(document["members"])

    return apply


DEFECTS = {
    "newer version": (lambda d: d.update(version=2), "its format version is 2"),
    "no members": (lambda d: d.pop("members"), "lacks the key 'members'"),
    "members no list": (lambda d: d.update(members={}), "needs a list as 'members'"),
    "empty": (members(lambda m: m.clear()), "needs at least one network"),
    "empty with sets": (lambda d: d.update(members=[], conformal={}), "needs at least one network"),
    "no object": (members(lambda m: m.append(3)), r"needs an object as 'members\[2\]'"),
    "an average in it": (
        lambda d: d["members"].append({**d, "members": []}),
        "network 3 in 'members': It holds an average",
    ),
    "a defect of one": (
        members(lambda m: m[1].pop("cpts")),
        "network 2 in 'members': It lacks the key 'cpts'",
    ),
    "other classes": (
        members(lambda m: m[1]["variables"][-1].update(states=["a", "b", "c"])),
        "network 2 of the average has other classes",
    ),
}


@pytest.mark.parametrize("kind", DEFECTS)
def test_defects(saved, kind):
    change, sentence = DEFECTS[kind]
    document = json.loads(saved.read_text())
    change(document)
    saved.write_text(json.dumps(document))
    with pytest.raises(InputError, match=sentence) as caught:
        load_any_classifier(saved)
    assert str(caught.value).startswith(f"The classifier file {str(saved)!r} is unusable: ")


def test_those_that_need_one_network_refuse_it(data, saved):
    where = f"{str(saved)!r}"
    with pytest.raises(InputError, match="solve without --average for a single network") as caught:
        load_classifier(saved)
    assert where in str(caught.value)
    with pytest.raises(InputError, match="not one structure; give the result of the run") as caught:
        read_structure(saved, data.names)
    assert where in str(caught.value)
    with pytest.raises(InputError, match="the average of several networks; give the file") as caught:
        Result.load(saved)
    assert where in str(caught.value)
