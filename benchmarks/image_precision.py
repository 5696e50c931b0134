"""Accuracy by bits per parameter on handwritten digits (Pernkopf, Wohlmayr & Mücke 2011, Figure 2).

    python benchmarks/image_precision.py [usps mnist-subsampled] --data-dir DIR

`images.py` describes the files in DIR. Classifiers are learnt as in the paper (the setting `paper` of
`image_heuristics.py`, with the gamma that was chosen there). Their parameters have 12 integer bits, and at most 64 bits
in all. Writes results/learners/precision-NAME.json and .png.
"""

from __future__ import annotations

import json
from typing import Any

from common import RESULTS, command, parse, parser, read_results
from image_heuristics import learn
from images import FOLDS, load

from milpbn.learners.base import Control
from milpbn.network import Classifier, evaluate
from milpbn.network.fixed_point import accuracy_by_width
from milpbn.plotting import draw_widths, save
from milpbn.util.atomic import atomic_write_text

#: The paper's format is Q12.52.
INTEGER_BITS, BITS = 12, 64


def main() -> None:
    made = parser(__doc__, data=("usps", "mnist-subsampled"), output=RESULTS / "learners")
    made.add_argument("--learners", nargs="+", default=["naive-bayes", "tan-cmi", "tan-omi-mm"])
    options = parse(made, list(FOLDS))
    chosen = read_results(RESULTS / "learners" / "images-discriminative.json")
    for data in options.data:
        train, test = load(options.data_dir, data)
        gamma = chosen[f"{data} paper tan-omi-mm"]["details"]["gamma"]
        document: dict[str, Any] = {"command": command(options, data)}
        for name in options.learners:
            classifier: Classifier = learn(train, name, "paper", gamma, Control())["classifier"]
            double = evaluate(classifier, test).accuracy
            figures = accuracy_by_width(classifier, test, INTEGER_BITS, BITS)
            enough = min(bits for bits, share in figures if share >= double - 0.005)
            document[name] = {"double": double, "bits_within_half_a_point": enough, "widths": figures}
            print(
                f"{data} {name}: {100 * double:.2f} %, within half a point from {enough} bits on", flush=True
            )
        atomic_write_text(options.output / f"precision-{data}.json", json.dumps(document) + "\n")
        last = document[options.learners[-1]]
        title = f"{data}, {options.learners[-1]}: {INTEGER_BITS} integer bits"
        save(draw_widths(last["widths"], last["double"], title), options.output / f"precision-{data}.png")


if __name__ == "__main__":
    main()
