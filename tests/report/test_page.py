"""The page of a report."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from fine import fine_classifier, raw_rows
from pictures import Page

from milpbn.claims.parts import SubsetClaim
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.data import Dataset, Variable
from milpbn.network import Classifier, PseudoClassifier, Structure
from milpbn.network.additive.record import AdditiveFit, AdditiveTrial
from milpbn.network.evaluation import evaluate
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.sets import calibrate_sets
from milpbn.problem.scores.spec import Score
from milpbn.report import report_page
from milpbn.solving.gains import arc_losses


@pytest.fixture(scope="module")
def toy():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(60, 4)).astype(np.int32)
    codes[:, 3] = (codes[:, 0] + rng.integers(0, 2, 60)) % 2
    features = (Variable(n, (s, "y", "z")) for n, s in (("年齢", "<x>"), ("b&c", "x"), ("d", "x")))
    data = Dataset("toy <script>", (*features, Variable("class", ("no", "yes"))), codes, np.ones(len(codes)))
    structure = Structure(data.names, ((3,), (0, 3), (), ()))
    result = Result(
        data=DataSummary(data.name, "0" * 64, 60, 50, 3, 2),
        score=Score(),
        reason="feasible",
        limit="time",
        structure=structure,
        objective=10.0,
        bound=12.0,
        bound_source="certified",
        backend=BackendInfo("native", "milpbn", 1),
        trace=((0.1, None, 20.0), (0.3, 10.0, 12.0)),
        notes=("One row was dropped.",),
    )
    return result, data, structure


def test_a_page_has_everything(toy):
    result, data, structure = toy
    page = Page(
        report_page(
            result,
            classifier=Classifier.fit(data, structure),
            train=data,
            test=data.take(np.arange(20)),
            losses=arc_losses(data, structure, result.score),
            version="9.9",
        )
    )
    for words in (
        "toy <script>",
        "16.667 %",
        "10.000000",
        "12.000000",
        "certified",
        "One row was dropped.",
        "年齢",
        "b&c",
        "training",
        "95 % interval",
        "What each variable contributes to the predictions",
        "milpbn 9.9",
        "milpbn solve 'toy <script>' --score sm",
        "PeharzPernkopf2012",
    ):
        assert words in page.text, words
    assert page.count("svg") >= 4


def test_accuracies_stand_beside_the_majority_and_name_rows_that_were_not_learnt_from(toy):
    result, data, structure = toy
    found = evaluate(Classifier.fit(data, structure), data)
    dropped = "Rows dropped for missing values: 5 of 60."
    for samples, said in ((55, True), (60, False)):
        one = replace(result, data=replace(result.data, samples=samples), notes=(dropped,))
        text = Page(report_page(one, classifier=Classifier.fit(data, structure), train=data)).text
        assert f"majority class{100 * found.majority_share:.2f} %" in text
        assert f"Brier score{found.brier:.4f}" in text
        assert f"calibration error{100 * found.calibration_error:.2f} %" in text
        assert (f"{dropped} Here they are among the training rows" in text) == said


def test_a_page_tells_costs_thresholds_and_curves(toy):
    """Costs lead; with a rare class or costs, ROC-AUC and the like come before the accuracy."""
    result, data, structure = toy
    classifier = Classifier.fit(data, structure)
    plain = report_page(result, classifier=classifier, train=data)
    text = report_page(result, classifier=classifier.deciding({"missed": 4, "false_alarm": 1}), train=data)
    figures = evaluate(classifier.deciding({"missed": 4, "false_alarm": 1}), data)
    assert f"{figures.cost.cost:.4g} (" in text
    assert f"always {figures.majority_class}" in text
    assert "above 0.2 (costs: missed 4, false alarm 1)" in text
    for page in (plain, text):
        for words in (
            "ROC-AUC",
            "average precision",
            "Thresholds of P(",
            "ROC, precision and recall, gain",
        ):
            assert words in page
    assert plain.index(">accuracy<") < plain.index(">ROC-AUC<")
    assert text.index(">cost per row<") < text.index(">ROC-AUC<") < text.index(">accuracy<")
    assert "cost per row" not in plain
    Page(text)


def test_a_page_tells_abstention_sets_and_intervals(toy):
    result, data, structure = toy
    classifier = Classifier.fit(data, structure)
    model = calibrate_sets(classifier, data, "folds").deciding({"abstain": 0.42})
    test = classifier.sample(50, random_state=1)
    text = report_page(result, classifier=model, train=data, test=test)
    share, _ = evaluate(model, test).cost.abstained
    assert f"{100 * share:.2f} % (" in text
    assert ">accuracy of the answers<" in text
    assert "Prediction sets (test rows)" in text
    lowest = np.argsort(model.explain_global(test).margins.log_margins, kind="stable")[0]
    low, high = model.predict_interval(test.take([lowest]))
    label = int(model.predict_proba(test.take([lowest]))[0].argmax())
    assert f"is between {low[0, label]:.4g} and {high[0, label]:.4g} (95 % interval" in text
    plain = report_page(result, classifier=PseudoClassifier(data.variables, classifier.cpts), train=data)
    assert "95 % interval of the tables" not in plain
    Page(text)


@pytest.mark.parametrize("rows_of_c", [20, 1])
def test_several_classes_stand_against_all_others(toy, rows_of_c):
    """A class that is never predicted has a row, too, without a precision."""
    _, data, _ = toy
    variables = (*data.variables[:3], Variable("class", ("a", "b", "c")))
    codes = data.codes.copy()
    codes[:, 3] = np.where(np.arange(60) < 3 * rows_of_c, np.arange(60) % 3, np.arange(60) % 2)
    data = replace(data, variables=variables, codes=codes)
    structure = Structure(data.names, ((3,), (3,), (), ()))
    result = replace(toy[0], data=DataSummary(data.name, "0" * 64, 60, 50, 3, 3), structure=structure)
    text = report_page(result, classifier=Classifier.fit(data, structure), train=data)
    _, table = text.split("Each class against all others (training rows)")
    lines = re.findall('<th scope="row">([abc])</th>(.*?)</tr>', table.split("</table>")[0])
    assert [label for label, _ in lines] == ["a", "b", "c"]
    assert ('<td class="n">-</td>' in lines[2][1]) == (rows_of_c == 1)
    assert "Thresholds of" not in text
    Page(text)


def test_a_page_needs_no_network_and_no_script(toy):
    result, data, structure = toy
    text = report_page(result, classifier=Classifier.fit(data, structure), train=data)
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset")
            assert name != "href" or value.startswith("#"), (tag, value)
    assert "url(" not in text
    assert "@import" not in text


def test_links_lead_to_sections(toy):
    page = Page(report_page(toy[0]))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    links = [attributes["href"][1:] for tag, attributes in page.tags if tag == "a"]
    assert links == ids
    assert len(set(ids)) == len(ids)


def test_the_choice_of_the_recipe_accurate_is_a_section(toy):
    one = dict.fromkeys(("main_ridge", "main_smoothness", "pair_ridge", "pair_smoothness", "kappa"), 0.25)
    trial = AdditiveTrial(
        cuts="mdl", structure="grown", log_loss=None, difference=0.0, standard_error=0.0, **one
    )
    fit = AdditiveFit(trials=(trial,), chosen=0, rows=9, folds=5, repeats=1, complete=False)
    parameters = ParameterFit(method="additive", fitted=True, kappa=0.25, additive=fit)
    text = report_page(replace(toy[0], parameters=parameters))
    assert "Chosen: cuts mdl" in text
    assert "chosen; 0.25 0.25 0.25 0.25" in text
    assert "The choice of cuts" not in report_page(toy[0])


def test_every_kind_of_result_has_a_page(toy):
    result = toy[0]
    subset = SubsetClaim(objective=10.0, bound=12.0, optimal=False, samples=4)
    for changes, words in (
        ({"objective": 12.0, "reason": "optimal", "limit": None}, "proved optimal"),
        ({"bound": None, "subset": subset}, "4 representative samples"),
        ({"bound": None, "trace": ()}, "no bound"),
        ({"structure": None, "objective": None, "reason": "no_solution"}, "without a structure"),
        ({"objective": -1.0}, "can be negative"),
    ):
        assert words in Page(report_page(replace(result, **changes))).text


def test_a_page_draws_curves_and_maps(toy):
    classifier = fine_classifier(0, coarse=8, fine=64)
    rows = classifier.encode(raw_rows(classifier, 80, 1))
    text = report_page(toy[0], classifier=classifier, train=rows)
    pairs = [t for t in classifier.explain_global().tables if t.form == "interaction"]
    assert pairs
    for table in pairs:
        assert f"{table.parents[0]} and {table.variable} together" in text
    assert "x0 (64 intervals, drawn equally wide)" in text
    assert "What two columns say only together is a map" in text
    assert "(fine)" not in text
    assert 'class="fit wide"' not in text


def test_only_wide_pictures_have_a_switch_to_their_full_size(toy):
    result, data, structure = toy
    rng = np.random.default_rng(57)
    names = [f"a feature with a long name {i}" for i in range(57)] + ["class"]
    tree = [(int(rng.integers(max(0, i - 10), i)), 57) for i in range(1, 57)]
    wide = Structure(names, [(57,), *tree, ()])
    for drawn, switches in ((structure, 0), (wide, 1)):
        text = report_page(replace(result, structure=drawn))
        assert text.count('class="full"') == switches
    assert 'class="fit wide"' in text
    assert 'class="fit wide"' not in report_page(
        result, classifier=Classifier.fit(data, structure), train=data
    )


#: Writes how far right anything in the frame reaches.
_MEASURE = """<iframe id="f" src="report.html" style="width:390px;height:900px;border:0"></iframe><p id="seen"></p>
<script>document.getElementById("f").onload = event => {
  const inside = event.target.contentDocument;
  inside.querySelectorAll("details").forEach(each => each.open = true);
  const rights = [...inside.querySelectorAll("svg, table, p, h1, h2, h3")].map(e => e.getBoundingClientRect().right);
  document.getElementById("seen").textContent = "reaches " + Math.ceil(Math.max(...rights));
}</script>"""


@pytest.mark.slow
def test_a_browser_shows_the_page(toy, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium")
    result, data, structure = toy
    page, phone = tmp_path / "report.html", tmp_path / "phone.html"
    page.write_text(
        report_page(result, classifier=Classifier.fit(data, structure), train=data), encoding="utf-8"
    )
    phone.write_text(_MEASURE, encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += [
        "--disable-background-networking",
        "--disable-component-update",
        "--allow-file-access-from-files",
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path / 'user'}",
    ]

    def shown(path):
        done = subprocess.run(
            [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    text = shown(page)
    assert "toy &lt;script&gt;" in text
    assert text.count("<svg") >= 4
    reaches = re.search(r"reaches (\d+)", shown(phone))
    assert reaches is not None
    assert int(reaches[1]) <= 390, "a phone would scroll sideways"
