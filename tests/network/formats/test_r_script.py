from __future__ import annotations

import shutil
import subprocess

import pandas as pd
import pytest
from scored_elsewhere import networks, new_rows

from milpbn.errors import InputError
from milpbn.network.formats.registry import write_network


@pytest.mark.parametrize("name", ["chain", "class with parents", "tables with zeros"])
def test_r_predicts_the_same(name, tmp_path):
    rscript = shutil.which("Rscript") or pytest.skip("R is not installed")
    if subprocess.run([rscript, "-e", "library(bnlearn)"], capture_output=True, check=False).returncode:
        pytest.skip("bnlearn is not installed")
    classifier = networks("state")[name]
    for ending in ("bif", "R"):
        write_network(classifier, tmp_path / f"c.{ending}")
    new_rows().to_csv(tmp_path / "rows.csv", index=False)
    subprocess.run([rscript, "c.R", "c.bif", "rows.csv", "p.csv"], cwd=tmp_path, check=True)
    rows, found = (
        pd.read_csv(tmp_path / f"{n}.csv", dtype=str, keep_default_na=False) for n in ("rows", "p")
    )
    shares = found[[f"P({label})" for label in classifier.classes]].astype(float)
    assert shares.to_numpy() == pytest.approx(classifier.predict_proba(rows), abs=1e-12)
    assert found[f"predicted {classifier.variables[-1].name}"].tolist() == classifier.predict(rows).tolist()


def test_an_average_gets_no_script(tmp_path):
    with pytest.raises(InputError, match="An R script holds one Bayesian network"):
        write_network(networks()["average"], tmp_path / "c.R")
    assert not list(tmp_path.iterdir())
