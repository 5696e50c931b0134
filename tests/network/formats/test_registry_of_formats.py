from __future__ import annotations

import pytest
from format_cases import assert_same, random_classifier
from scored_elsewhere import networks

from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.formats.classifier_files import OF_OTHERS
from milpbn.network.formats.onnx_format import classifier_to_onnx
from milpbn.network.formats.pmml import classifier_to_pmml
from milpbn.network.formats.python_format import classifier_to_python
from milpbn.network.formats.registry import READERS, WRITERS, read_network, write_network
from milpbn.network.formats.sql import classifier_to_sql


@pytest.mark.parametrize("ending", sorted(set(READERS) & set(WRITERS)))
def test_every_format_that_is_read_comes_back(ending, tmp_path):
    classifier = random_classifier(3)
    write_network(classifier, tmp_path / f"n{ending.upper()}")
    assert_same(read_network(tmp_path / f"n{ending.upper()}"), classifier)


@pytest.mark.parametrize(
    ("ending", "written"),
    [
        (".sql", classifier_to_sql),
        (".onnx", classifier_to_onnx),
        (".pmml", classifier_to_pmml),
        (".py", classifier_to_python),
    ],
)
def test_formats_that_are_only_written(ending, written, tmp_path):
    if ending == ".onnx":
        pytest.importorskip("onnx")
    classifier = networks()["average"]
    write_network(classifier, tmp_path / f"n{ending}")
    content = written(classifier)
    found = (tmp_path / f"n{ending}").read_bytes()
    assert found == (content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("ending", [ending for ending in WRITERS if ending in (".bif", ".xmlbif", ".dot")])
def test_an_average_is_refused_in_a_sentence(ending, tmp_path):
    average = AveragedClassifier((random_classifier(1), random_classifier(1)))
    with pytest.raises(
        InputError, match="holds one Bayesian network, but the classifier is an average of 2; solve"
    ):
        write_network(average, tmp_path / f"n{ending}")
    assert not list(tmp_path.iterdir())


def test_another_variable_can_be_the_class(tmp_path):
    classifier = random_classifier(4)
    name = next(v.name for v in classifier.variables[:-1] if v.n_states > 1)
    write_network(classifier, tmp_path / "n.json")
    assert read_network(tmp_path / "n.json", name).variables[-1].name == name


def test_unknown_endings_and_bad_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"n.txt' is not one of a network"):
        write_network(random_classifier(1), tmp_path / "n.txt")
    (tmp_path / "n.bif").write_text("network x {", encoding="utf-8")
    with pytest.raises(InputError, match=r"network file '.*n.bif' is unusable: it ends within"):
        read_network(tmp_path / "n.bif")


def test_every_format_of_other_programs_is_known_to_the_reader_of_classifier_files():
    assert {".json", *OF_OTHERS} == {*READERS}
