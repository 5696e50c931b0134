"""The data sets of the papers: what is known of them, and whether a folder has them."""

from dataclasses import replace

import pytest

from milpbn.data.known import differences, known_set, known_sets
from milpbn.errors import InputError
from milpbn.experiments.images import IMAGES, known_name
from milpbn.experiments.published import published


def test_all_sets_of_the_papers_are_known():
    known = known_sets()
    assert set(published().accuracies) | {known_name(name) for name in IMAGES} == set(known)
    for one in known.values():
        assert one.source.startswith("https://")
        assert one.sha256 is None or len(one.sha256) == 64
        assert one.train_rows is None or 0 < one.train_rows < one.rows
    with pytest.raises(InputError, match="no known data set 'x'; choose from abalone, "):
        known_set("x")


def test_the_protocol_is_that_of_the_paper():
    with_test_sets = (
        "chess letter mofn-3-7-10 satimage segment shuttle-small waveform-21 abalone adult car mushroom"
    )
    with_test_sets += " nursery spambase"
    found = {name for name in published().accuracies if known_set(name).protocol.startswith("test set")}
    assert found == set(with_test_sets.split())
    assert known_set("letter").protocol == "test set: 15,000 rows train, 5,000 test"


def test_differences_are_named():
    letter = known_set("letter")
    assert list(differences(letter, 20000, 16, 26, 15000)) == []
    assert list(differences(letter, 19999, 16, 25, None)) == [
        "19,999 rows instead of 20,000",
        "25 classes instead of 26",
        "no split instead of 15,000 training rows",
    ]
    # A split that the paper does not publish may be any.
    assert list(differences(known_set("spambase"), 4601, 57, 2, 2301)) == []


def test_a_set_is_found_in_a_folder_or_one_inside_it(tmp_path):
    usps = known_set("usps-discretised")
    assert usps.folder(tmp_path) is None
    assert usps.folder(None) is None
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "usps-discretised.npz").touch()
    assert usps.folder(tmp_path) == tmp_path / "images"
    iris = known_set("iris")
    (tmp_path / "iris.csv.gz").touch()
    assert iris.folder(tmp_path) is None
    (tmp_path / "catalog.json").write_text("{}")
    assert iris.folder(tmp_path) is None  # the catalog does not have it
    (tmp_path / "catalog.json").write_text('{"iris": {}}')
    assert iris.folder(tmp_path) == tmp_path
    assert replace(iris, name="other").folder(tmp_path) is None
