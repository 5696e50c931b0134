"""Pictures of comparisons, and of accuracy over bits."""

from __future__ import annotations

import pytest
from pictures import of_kind, texts

from milpbn.drawing.scene import Box, Path
from milpbn.errors import InputError
from milpbn.plotting import draw_comparison, draw_widths

ROWS = [
    {"name": "tan", "test": 0.9, "gap": 3.0, "details": {}},
    {"name": "sm", "test": 0.93, "gap": 0.0, "details": {"bound": 5.0}, "intervals": {"test": [0.9, 0.95]}},
    {"name": "svm", "test": None},
]


def dots(scene) -> list[str]:
    return [item.fill for item in of_kind(scene, Box, radius=4.5)]


def test_learners_are_ranked_with_their_intervals():
    scene = draw_comparison({"data": {"name": "toy"}, "rows": ROWS})
    shown = texts(scene)
    assert shown.index("sm") < shown.index("tan")
    assert "Without accuracy: svm." in shown
    assert dots(scene) == ["class-edge", "feature-edge"]
    assert len(of_kind(scene, Path, width=2.0)) == 1


def test_of_a_rare_class_the_roc_auc_is_drawn():
    rows = [
        {**ROWS[0], "roc_auc": 0.8},
        {**ROWS[1], "roc_auc": 0.7, "intervals": {"roc_auc": [0.6, 0.8]}},
        ROWS[2],
    ]
    scene = draw_comparison({"data": {"name": "toy"}, "rows": rows, "rarest_share": 0.02})
    shown = texts(scene)
    assert shown.index("tan") < shown.index("sm")
    assert {"toy: ROC-AUC on the test rows", "ROC-AUC (%)", "Without ROC-AUC: svm.", "80.00"} <= {*shown}
    assert "toy: accuracy on the test rows" in texts(
        draw_comparison({"data": {"name": "toy"}, "rows": rows, "rarest_share": 0.2})
    )


def test_differences_are_grey_where_the_rows_cannot_tell_them_from_0():
    worse = {"test": {"value": -0.03, "low": -0.05, "high": -0.01}}
    same = {"test": {"value": -0.00001, "low": -0.2, "high": 0.1}}
    rows = [
        {**ROWS[1], "name": "sm"},
        {**ROWS[0], "differences": worse},
        {"name": "boosting", "test": 0.91, "differences": same},
    ]
    scene = draw_comparison({"rows": rows, "against": "sm", "folds": 5, "repeats": 2})
    titles = {"Accuracy over 5 folds, 2 times", "Difference to sm on the same rows"}
    assert titles | {"-3.00", "+0.00"} <= {*texts(scene)}
    assert dots(scene)[3:] == ["unused-edge", "feature-edge"]


def test_a_comparison_without_intervals_or_test_rows_is_drawn():
    scene = draw_comparison({"rows": [{"name": "sm", "training": 0.5}]})
    assert "Accuracy on the training rows" in scene.description
    assert "exact search" not in texts(scene)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        *((document, "not the output of milpbn compare") for document in ({}, {"rows": 3}, {"rows": [1]})),
        ({"rows": [{"name": "a", "test": "x"}]}, "a learner's figures are no numbers"),
        ({"rows": [{"name": "a", "test": 0.5, "intervals": 3}]}, "a learner's figures are no numbers"),
        ({"rows": []}, "No learner of the comparison has an accuracy"),
        ({"rows": [{"name": "a"}]}, "No learner of the comparison has an accuracy"),
    ],
)
def test_other_documents_are_refused(document, words):
    with pytest.raises(InputError, match=words):
        draw_comparison(document)


def test_accuracies_by_bits():
    scene = draw_widths([(8, 0.9), (4, 0.7), (1, 0.5)], 0.91, "toy")
    assert len(of_kind(scene, Box, radius=3.0)) == 3
