from dataclasses import replace

import numpy as np
import pytest
from fine import fine_classifier

from milpbn import __version__
from milpbn.data.dataset import UNKNOWN, Variable
from milpbn.errors import InputError
from milpbn.network import Classifier, Cpt, Structure, fit_cpts
from milpbn.network.checks import check_variables


@pytest.fixture
def data(make_data):
    return make_data(7, samples=80)


@pytest.fixture
def classifier(data, make_structure):
    return Classifier.fit(data, make_structure(data.names, 2))


def test_fit_uses_the_maximum_likelihood_tables(data, classifier):
    for ours, table in zip(classifier.cpts, fit_cpts(data, classifier.structure), strict=True):
        assert np.array_equal(ours.table, table.table)
    assert classifier.classes == ("s0", "s1", "s2")


def test_predictions_are_consistent(data, classifier):
    log_joint = classifier.predict_log_joint(data)
    proba = classifier.predict_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    expected = [classifier.classes[c] for c in log_joint.argmax(axis=1)]
    assert classifier.predict(data).tolist() == expected
    assert [classifier.classes[c] for c in proba.argmax(axis=1)] == expected


def test_ties_go_to_the_first_class(data):
    tied = replace(data, codes=data.codes.copy())
    tied.codes[:, -1] = np.arange(80) % 2 + 1  # classes 1 and 2 equally often, class 0 never
    classifier = Classifier.fit(tied, Structure.empty(data.names))
    assert set(classifier.predict(tied)) == {"s1"}


def test_rows_without_any_known_value_get_the_prior(data):
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    blank = replace(data, codes=np.full_like(data.codes, UNKNOWN))
    prior = np.log(classifier.cpts[-1].table)
    np.testing.assert_allclose(classifier.predict_log_joint(blank), np.tile(prior, (80, 1)), rtol=1e-15)


def test_provenance_records_version_and_data_and_takes_more(data, make_structure):
    structure = make_structure(data.names)
    plain = Classifier.fit(data, structure)
    assert plain.provenance["milpbn"] == __version__
    assert plain.provenance["data"] == {
        "name": "random",
        "sha256": data.sha256,
        "samples": 80,
        "left_out": {},
        "rows_by_state": [
            [int((codes == k).sum()) for k in range(v.n_states)]
            for v, codes in zip(data.variables, data.codes.T, strict=True)
        ],
    }
    more = Classifier.fit(data, structure, provenance={"objective": 1.5, "milpbn": "other"})
    assert more.provenance["objective"] == 1.5
    assert more.provenance["milpbn"] == "other"


def test_data_with_other_states_are_refused(data, classifier, make_data):
    other = make_data(states=(2, 3, 4, 2, 3))
    with pytest.raises(InputError, match="other columns or states"):
        classifier.predict(other)


def test_frames_and_paths_go_through_the_reader(data, classifier, monkeypatch):
    import milpbn.data

    asked = []

    def read_encodings(source, sets, *, form, ignore_unseen, has_class):
        assert has_class
        assert not ignore_unseen
        asked.append((source, *sets))
        return data

    monkeypatch.setattr(milpbn.data, "read_encodings", read_encodings, raising=False)
    assert np.array_equal(classifier.predict("file.csv"), classifier.predict(data))
    assert asked == [("file.csv", classifier.variables)]


def test_parts_that_do_not_belong_together_are_refused(data, classifier):
    cpts = classifier.cpts

    def changed(i, **change):
        return (*cpts[:i], replace(cpts[i], **change), *cpts[i + 1 :])

    for change, words in (
        ({"structure": Structure.empty(["a", "b"])}, "different names"),
        ({"cpts": cpts[:-1]}, "5 variables and 4 tables"),
        ({"cpts": changed(0, variable=1)}, "other parents"),
        ({"cpts": changed(0, table=np.ones((7, 1)))}, "shape"),
        ({"cpts": changed(0, table=cpts[0].table * 1.1)}, "do not sum to 1"),
        ({"cpts": changed(0, table=np.full_like(cpts[0].table, np.nan))}, "negative or not finite"),
    ):
        with pytest.raises(InputError, match=words):
            replace(classifier, **change)


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        (Variable("x", ("a", "a")), "state 'a' of 'x' occurs twice"),
        (Variable("x", ()), "no states"),
        (Variable("class", ("a",)), "name 'class' occurs twice"),
        (Variable("x", ("a", "b"), cuts=(1.0, 2.0)), "its cuts define 3 intervals"),
        (Variable("x", ("a", "b", "c"), cuts=(2.0, 2.0)), "do not ascend"),
        (Variable("x", ("a", "b"), cuts=(float("inf"),)), "not all finite"),
        (Variable("x", ("a", "b"), column="class"), "'class' of the class has another variable"),
    ],
)
def test_bad_variables_are_refused(variable, sentence):
    variables = (variable, Variable("class", ("y", "n")))
    structure = Structure.empty(["x", "class"])
    cpts = (Cpt(0, (), np.full(2, 0.5)), Cpt(1, (), np.full(2, 0.5)))
    with pytest.raises(InputError, match=sentence):
        Classifier(variables, structure, cpts)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cuts": (-9.0, 9.0)}, "but not all cuts of the one are cuts of the other"),
        ({"cuts": None}, "but not all cuts of the one are cuts of the other"),
        (
            {"missing_state": True, "states": ("a", "b", "c", "?")},
            "only one of them has a state of missing values",
        ),
        ({"name": "colour"}, "has the name of another one"),
    ],
)
def test_variables_of_one_column_fit_together(change, sentence):
    classifier = fine_classifier(0)
    place = 0 if "name" not in change else 1
    variables = tuple(replace(v, **change) if i == place else v for i, v in enumerate(classifier.variables))
    if "name" in change:
        variables = (*variables[:2], replace(variables[2], name="hue", column="colour"), *variables[3:])
    with pytest.raises(InputError, match=sentence):
        check_variables(variables)


def test_columns_are_counted_and_drawn_not_their_variables():
    classifier = fine_classifier(0, coarse=3, fine=9)
    assert "4 features" in repr(classifier)
    drawn = classifier.column_structure
    assert drawn.names == ("x0", "colour", "x2", "x3", "kind")
    assert {(drawn.names[j], drawn.names[i]) for j, i in drawn.arcs} == {
        (classifier.variables[j].raw_column, classifier.variables[i].raw_column)
        for j, i in classifier.structure.arcs
    } - {(name, name) for name in drawn.names}
    # Of 9 fine intervals in 3 coarse ones, 6 are free in each class.
    k = classifier.structure.names.index("x3 (fine)")
    free = [cpt.table[..., 0].size * (cpt.table.shape[-1] - 1) for cpt in classifier.cpts]
    fine = sum(v.column is not None for v in classifier.variables)
    assert classifier.cpts[k].table.shape == (3, 3, 9)
    assert classifier.n_parameters == sum(free) - fine * (3 * 3 * 8 - 6 * 3)


def test_missing_state_counts_beside_the_intervals():
    variables = (
        Variable("x", ("<=1", ">1", "missing"), cuts=(1.0,), missing_state=True),
        Variable("class", ("y", "n")),
    )
    cpts = (Cpt(0, (), np.full(3, 1 / 3)), Cpt(1, (), np.full(2, 0.5)))
    assert Classifier(variables, Structure.empty(["x", "class"]), cpts).classes == ("y", "n")
