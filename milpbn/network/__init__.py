"""Bayesian networks: structures, their tables, the classifier they make, and its files.

`Structure` says who is whose parent, `fit_cpts` estimates the tables, `Classifier` predicts,
`evaluate` counts how well; `files` and `structure_files` read and write both.
"""

from milpbn.network.classifier import Classifier, TableClassifier
from milpbn.network.cpt import Cpt, class_log_joint, fit_cpts
from milpbn.network.evaluation import Evaluation, evaluate
from milpbn.network.files import load_any_classifier, load_classifier, save_classifier
from milpbn.network.margins import log_margins, log_posterior, soft_margin
from milpbn.network.pseudo import PseudoClassifier
from milpbn.network.structure import Structure
from milpbn.network.structure_files import read_parents, read_structure, to_dot, write_arcs

__all__ = [
    "Classifier",
    "Cpt",
    "Evaluation",
    "PseudoClassifier",
    "Structure",
    "TableClassifier",
    "class_log_joint",
    "evaluate",
    "fit_cpts",
    "load_any_classifier",
    "load_classifier",
    "log_margins",
    "log_posterior",
    "read_parents",
    "read_structure",
    "save_classifier",
    "soft_margin",
    "to_dot",
    "write_arcs",
]
