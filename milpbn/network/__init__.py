"""Bayesian networks: structures, conditional probability tables, and classifiers.

A `Structure` holds the parents of every variable, `fit_cpts` estimates the tables, a `Classifier` predicts, and
`evaluate` measures its accuracy. Only the modules of `formats` read and write files; their functions can be imported
from here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily

if TYPE_CHECKING:
    from milpbn.network.averaged import AveragedClassifier
    from milpbn.network.classifier import Classifier, TableClassifier
    from milpbn.network.cpt import Cpt, class_log_joint, fit_cpts
    from milpbn.network.evaluation import Evaluation, evaluate
    from milpbn.network.formats.classifier_files import load_any_classifier, load_classifier, save_classifier
    from milpbn.network.formats.libraries import (
        from_networkx,
        from_pgmpy,
        from_pyagrum,
        structure_from_networkx,
        to_networkx,
        to_pgmpy,
        to_pyagrum,
    )
    from milpbn.network.formats.registry import read_network, write_network
    from milpbn.network.formats.structure_files import read_parents, read_structure, to_dot, write_arcs
    from milpbn.network.inference.queries import Explanation
    from milpbn.network.margins import log_margins, log_posterior, soft_margin
    from milpbn.network.pseudo import PseudoClassifier
    from milpbn.network.structure import Structure

__all__ = [
    "AveragedClassifier",
    "Classifier",
    "Cpt",
    "Evaluation",
    "Explanation",
    "PseudoClassifier",
    "Structure",
    "TableClassifier",
    "class_log_joint",
    "evaluate",
    "fit_cpts",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "load_any_classifier",
    "load_classifier",
    "log_margins",
    "log_posterior",
    "read_network",
    "read_parents",
    "read_structure",
    "save_classifier",
    "soft_margin",
    "structure_from_networkx",
    "to_dot",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "write_arcs",
    "write_network",
]

_HOME = {
    "AveragedClassifier": "averaged",
    "Classifier": "classifier",
    "Cpt": "cpt",
    "Evaluation": "evaluation",
    "Explanation": "inference.queries",
    "PseudoClassifier": "pseudo",
    "Structure": "structure",
    "TableClassifier": "classifier",
    "class_log_joint": "cpt",
    "evaluate": "evaluation",
    "fit_cpts": "cpt",
    "from_networkx": "formats.libraries",
    "from_pgmpy": "formats.libraries",
    "from_pyagrum": "formats.libraries",
    "load_any_classifier": "formats.classifier_files",
    "load_classifier": "formats.classifier_files",
    "log_margins": "margins",
    "log_posterior": "margins",
    "read_network": "formats.registry",
    "read_parents": "formats.structure_files",
    "read_structure": "formats.structure_files",
    "save_classifier": "formats.classifier_files",
    "soft_margin": "margins",
    "structure_from_networkx": "formats.libraries",
    "to_dot": "formats.structure_files",
    "to_networkx": "formats.libraries",
    "to_pgmpy": "formats.libraries",
    "to_pyagrum": "formats.libraries",
    "write_arcs": "formats.structure_files",
    "write_network": "formats.registry",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
