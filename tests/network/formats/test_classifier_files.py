"""The classifier file: exact round trips, and a sentence for every defect."""

import json
import math

import numpy as np
import pytest
from fine import fine_classifier, raw_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure, load_classifier, save_classifier
from milpbn.util.jsonable import dump_json, json_safe, parse_object


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(11, samples=70)


@pytest.fixture(scope="module")
def classifier(data, make_structure):
    provenance = {"score": {"name": "sm", "gamma": 4.6}, "bound": math.inf, "gap": np.float64("nan")}
    return Classifier.fit(data, make_structure(data.names, 4), 0.3, provenance)


@pytest.fixture
def saved(classifier, tmp_path):
    save_classifier(classifier, tmp_path / "classifier.json")
    return tmp_path / "classifier.json"


def test_round_trip_is_bit_exact(data, classifier, saved):
    loaded = load_classifier(saved)
    assert loaded.variables == classifier.variables
    assert loaded.structure == classifier.structure
    assert loaded.smoothing == 0.3
    assert np.array_equal(loaded.predict_log_joint(data), classifier.predict_log_joint(data))
    assert loaded.provenance["score"] == {"name": "sm", "gamma": 4.6}
    assert loaded.provenance["bound"] is None
    assert loaded.provenance["gap"] is None


def test_saving_again_gives_the_same_bytes_and_leaves_nothing_beside(saved):
    first = saved.read_bytes()
    save_classifier(load_classifier(saved), saved)
    assert saved.read_bytes() == first
    assert [p.name for p in saved.parent.iterdir()] == ["classifier.json"]


def test_odd_labels_and_cuts_survive(tmp_path):
    variables = (
        Variable('na"me, ünï\n', ("(-inf, 0.1]", "(0.1, inf)", "\ud800"), cuts=(0.1,), missing_state=True),
        Variable("#->", ("1", "1.5"), numeric=True),
        Variable("class", ("Ja", "Nein")),
    )
    data = Dataset("odd", variables, np.array([[0, 1, 0], [2, 0, 1]], dtype=np.int32), np.ones(2))
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    save_classifier(classifier, tmp_path / "c.json")
    loaded = load_classifier(tmp_path / "c.json")
    assert loaded.variables == variables
    assert np.array_equal(loaded.predict_proba(data), classifier.predict_proba(data))


@pytest.mark.parametrize("missing", [False, True])
def test_two_variables_of_one_column_survive(tmp_path, missing):
    classifier = fine_classifier(3, missing=missing)
    save_classifier(classifier, tmp_path / "c.json")
    loaded = load_classifier(tmp_path / "c.json")
    assert loaded.variables == classifier.variables
    frame = raw_rows(classifier, 50, 1, missing=0.2)
    assert np.array_equal(loaded.predict_proba(frame), classifier.predict_proba(frame))


def test_the_prior_is_kept_and_files_without_one_are_of_laplace_smoothing(data, tmp_path):
    structure = Structure.naive_bayes(data.names)
    path = tmp_path / "c.json"
    save_classifier(Classifier.fit(data, structure, 0.5, smoothing_towards="marginal"), path)
    assert load_classifier(path).smoothing_towards == "marginal"
    document = json.loads(path.read_text())
    del document["smoothing_towards"]
    path.write_text(json.dumps(document))
    assert load_classifier(path).smoothing_towards == "uniform"


def test_provenance_without_json_form_writes_nothing(data, tmp_path):
    classifier = Classifier.fit(data, Structure.empty(data.names), provenance={"date": object()})
    with pytest.raises(InputError, match="type object cannot be written"):
        save_classifier(classifier, tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def edit(*keys, value=None, delete=False, apply=None):
    """Return a change to the value at the path ``keys`` of a document."""

    def change(document):
        place = document
        for key in keys[:-1]:
            place = place[key]
        if delete:
            del place[keys[-1]]
        else:
            place[keys[-1]] = apply(place[keys[-1]]) if apply else value

    return change


def double_first(table):
    """Double the first number of nested lists."""
    return [double_first(table[0]), *table[1:]] if isinstance(table, list) else 2 * table


def first_number(new):
    def apply(table):
        return [apply(table[0]), *table[1:]] if isinstance(table, list) else new

    return apply


CORRUPTIONS = {
    "other format": (edit("format", value="milpbn-result"), "key 'format' is not"),
    "no format": (edit("format", delete=True), "key 'format' is not"),
    "newer version": (edit("version", value=2), "format version is 2"),
    "no variables": (edit("variables", delete=True), "lacks the key 'variables'"),
    "variables no list": (edit("variables", value={}), "needs a list as 'variables'"),
    "variable no object": (edit("variables", 0, value="x0"), r"needs an object as 'variables\[0\]'"),
    "variable without name": (
        edit("variables", 0, "name", delete=True),
        r"lacks the key 'name' in 'variables\[0\]'",
    ),
    "duplicated name": (edit("variables", 0, "name", value="x1"), "name 'x1' occurs twice"),
    "name no text": (edit("variables", 0, "name", value=3), r"needs text as 'variables\[0\]\.name'"),
    "duplicated state": (
        edit("variables", 1, "states", value=["a", "b", "a"]),
        "state 'a' of 'x1' occurs twice",
    ),
    "state no text": (
        edit("variables", 1, "states", value=["a", 1, "b"]),
        r"text as 'variables\[1\]\.states\[1\]'",
    ),
    "state too few": (edit("variables", 1, "states", value=["a", "b"]), "shape"),
    "cuts descend": (edit("variables", 1, "cuts", value=[2.0, 1.0]), "cuts of 'x1' do not ascend"),
    "cuts equal": (edit("variables", 1, "cuts", value=[2.0, 2.0]), "cuts of 'x1' do not ascend"),
    "cuts too many": (edit("variables", 1, "cuts", value=[1.0, 2.0, 3.0]), "cuts define 4 intervals"),
    "cuts no numbers": (
        edit("variables", 1, "cuts", value=[1.0, "2"]),
        r"number as 'variables\[1\]\.cuts\[1\]'",
    ),
    "cut beyond floats": (edit("variables", 1, "cuts", value=[1, 10**400]), "a number of 401 digits"),
    "flag no bool": (
        edit("variables", 1, "numeric", value=0),
        r"needs true or false as 'variables\[1\]\.numeric'",
    ),
    "only the class": (edit("variables", apply=lambda v: v[-1:]), "at least one feature"),
    "no structure": (edit("structure", delete=True), "lacks the key 'structure'"),
    "structure no object": (edit("structure", value=[]), "structure is not an object"),
    "parents no list": (edit("structure", "x0", value="class"), "entry for 'x0' is not a list"),
    "unknown parent": (edit("structure", "x0", value=["x9"]), "names 'x9', which is not a variable"),
    "cycle": (edit("structure", value={"x0": ["x1"], "x1": ["x0"]}), "has the cycle"),
    "own parent": (edit("structure", value={"x0": ["x0"]}), "must be other variables"),
    "no tables": (edit("cpts", delete=True), "lacks the key 'cpts'"),
    "table missing": (edit("cpts", "x2", delete=True), "lacks the key 'x2' in 'cpts'"),
    "table surplus": (edit("cpts", "x9", value={}), "unknown key 'x9' in 'cpts'"),
    "other parents": (
        edit("cpts", "x0", "parents", apply=lambda p: [*p, "x3"]),
        "are not those of the structure",
    ),
    "table no list": (edit("cpts", "x0", "table", value=0.5), r"needs a list as 'cpts\.x0\.table'"),
    "table ragged": (edit("cpts", "x0", "table", value=[[0.5, 0.5], [1.0]]), "different lengths"),
    "table of text": (edit("cpts", "x0", "table", value=["0.5", "0.5"]), "values that are not numbers"),
    "table with null": (edit("cpts", "x0", "table", apply=first_number(None)), "values that are not numbers"),
    "table flat": (edit("cpts", "x1", "table", value=[0.2] * 5), "table of 'x1' has the shape"),
    "row sum": (edit("cpts", "x1", "table", apply=double_first), "do not sum to 1"),
    "negative": (edit("cpts", "x1", "table", apply=first_number(-0.1)), "negative or not finite"),
    "NaN": (edit("cpts", "x1", "table", apply=first_number(math.nan)), "holds NaN"),
    "infinity": (edit("cpts", "x1", "table", apply=first_number(math.inf)), "holds Infinity"),
    "no smoothing": (edit("smoothing", delete=True), "lacks the key 'smoothing'"),
    "smoothing negative": (edit("smoothing", value=-1), "a finite number of at least 0 as 'smoothing'"),
    "smoothing true": (edit("smoothing", value=True), "a finite number of at least 0 as 'smoothing'"),
    "another prior": (edit("smoothing_towards", value="parents"), "must be uniform, marginal or class"),
    "prior 1": (edit("smoothing_towards", value=1), "must be uniform, marginal or class"),
    "no provenance": (edit("provenance", delete=True), "lacks the key 'provenance'"),
}


def test_a_result_is_refused_with_a_hint(tmp_path):
    (tmp_path / "result.json").write_text('{"status": {}, "structure": {}}')
    with pytest.raises(InputError, match=r"holds a result, .* give the file that --classifier wrote"):
        load_classifier(tmp_path / "result.json")


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_corrupted_values_are_refused(saved, kind):
    change, sentence = CORRUPTIONS[kind]
    document = json.loads(saved.read_text())
    change(document)
    saved.write_text(json.dumps(document))
    with pytest.raises(InputError, match=sentence) as caught:
        load_classifier(saved)
    message = str(caught.value)
    assert message.startswith(f"The classifier file {str(saved)!r} is unusable: ")
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not JSON"),
        (b"not json", "not JSON: .* in line 1, column 1"),
        (b"[]", "not a JSON object"),
        (b'{"format": "milpbn-classifier", "format": 1}', "the key 'format' twice"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 200_000, "too deeply nested"),
        (b'{"version": ' + b"9" * 5000 + b"}", "a number is too long"),
        (b'{"version": 1e999}', "the number '1e999', which is beyond float64"),
        (b'{"version": 1' + b"0" * 400 + b"}", "a number of 401 digits"),
    ],
)
def test_corrupted_bytes_are_refused(tmp_path, content, sentence):
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        load_classifier(path)


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes().rstrip()
    for end in range(0, len(content), 97):
        saved.write_bytes(content[:end])
        with pytest.raises(InputError, match="not JSON"):
            load_classifier(saved)


def test_paths_that_are_no_file_are_refused(tmp_path):
    for path in (tmp_path / "missing.json", tmp_path, "nul\0byte"):
        with pytest.raises(InputError, match="Cannot read the classifier file"):
            load_classifier(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=6)  # drawing such a value takes long
@given(st.dictionaries(st.text(), json_values))
def test_json_text_holds_every_value(document):
    assert json_safe(document) == document
    assert parse_object(dump_json(document)) == document
