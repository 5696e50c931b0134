"""Bayesian networks: structures, conditional probability tables, and classifiers.

A `Structure` holds the parents of every variable, `fit_cpts` estimates the tables, a `Classifier` predicts, and
`evaluate` measures its accuracy. Only the modules of `formats` read and write files; their functions can be imported
from here, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily

if TYPE_CHECKING:
    from milpbn.network.averaged import AveragedClassifier as AveragedClassifier
    from milpbn.network.classifier import Classifier as Classifier
    from milpbn.network.classifier import TableClassifier as TableClassifier
    from milpbn.network.cpt import Cpt as Cpt
    from milpbn.network.cpt import class_log_joint as class_log_joint
    from milpbn.network.cpt import fit_cpts as fit_cpts
    from milpbn.network.evaluation import Evaluation as Evaluation
    from milpbn.network.evaluation import evaluate as evaluate
    from milpbn.network.formats.classifier_files import load_any_classifier as load_any_classifier
    from milpbn.network.formats.classifier_files import load_classifier as load_classifier
    from milpbn.network.formats.classifier_files import save_classifier as save_classifier
    from milpbn.network.formats.libraries import from_networkx as from_networkx
    from milpbn.network.formats.libraries import from_pgmpy as from_pgmpy
    from milpbn.network.formats.libraries import from_pyagrum as from_pyagrum
    from milpbn.network.formats.libraries import structure_from_networkx as structure_from_networkx
    from milpbn.network.formats.libraries import to_networkx as to_networkx
    from milpbn.network.formats.libraries import to_pgmpy as to_pgmpy
    from milpbn.network.formats.libraries import to_pyagrum as to_pyagrum
    from milpbn.network.formats.registry import read_network as read_network
    from milpbn.network.formats.registry import write_network as write_network
    from milpbn.network.formats.structure_files import read_parents as read_parents
    from milpbn.network.formats.structure_files import read_structure as read_structure
    from milpbn.network.formats.structure_files import to_dot as to_dot
    from milpbn.network.formats.structure_files import write_arcs as write_arcs
    from milpbn.network.inference.queries import Explanation as Explanation
    from milpbn.network.margins import log_margins as log_margins
    from milpbn.network.margins import log_posterior as log_posterior
    from milpbn.network.margins import soft_margin as soft_margin
    from milpbn.network.pseudo import PseudoClassifier as PseudoClassifier
    from milpbn.network.structure import Structure as Structure

__getattr__, __dir__ = lazily(
    __name__,
    {
        "network.averaged": ["AveragedClassifier"],
        "network.classifier": ["Classifier", "TableClassifier"],
        "network.cpt": ["Cpt", "class_log_joint", "fit_cpts"],
        "network.evaluation": ["Evaluation", "evaluate"],
        "network.formats.classifier_files": ["load_any_classifier", "load_classifier", "save_classifier"],
        "network.formats.libraries": [
            "from_networkx",
            "from_pgmpy",
            "from_pyagrum",
            "structure_from_networkx",
            "to_networkx",
            "to_pgmpy",
            "to_pyagrum",
        ],
        "network.formats.registry": ["read_network", "write_network"],
        "network.formats.structure_files": ["read_parents", "read_structure", "to_dot", "write_arcs"],
        "network.inference.queries": ["Explanation"],
        "network.margins": ["log_margins", "log_posterior", "soft_margin"],
        "network.pseudo": ["PseudoClassifier"],
        "network.structure": ["Structure"],
    },
)
