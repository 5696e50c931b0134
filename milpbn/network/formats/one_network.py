"""What formats of a single Bayesian network can hold."""

from __future__ import annotations

from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import AnyClassifier


def one_network(classifier: AnyClassifier, what: str) -> Classifier:
    """Return a classifier that is a single Bayesian network.

    Parameters
    ----------
    classifier : AnyClassifier
        Any classifier.
    what : str
        What is to hold it, which begins the sentence of an error, such as "A BIF file".

    Raises
    ------
    InputError
        If it is an average or a pseudo-TAN.
    """
    if isinstance(classifier, AveragedClassifier):
        raise InputError(
            f"{what} holds one Bayesian network, but the classifier is an average of {len(classifier.members)}; "
            "solve without --average for a single network."
        )
    if not isinstance(classifier, Classifier):
        raise InputError(
            f"{what} holds a Bayesian network, but the classifier is a pseudo-TAN, which is none."
        )
    return classifier
