"""milpbn: exact maximum-margin structure learning of Bayesian network classifiers."""

__version__ = "0.1.0"
