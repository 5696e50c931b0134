"""Exact inference in a Bayesian network: probabilities of any variables, given the values of any others.

`elimination` sums variables out of factors, one after the other. Everything follows from it: probabilities of evidence,
posteriors, the most probable explanation, samples (`queries`), and the log-joints of rows with missing values (`rows`).
"""

from milpbn.network.inference.queries import Explanation, Queries
from milpbn.network.inference.rows import log_joint_of_rows

__all__ = ["Explanation", "Queries", "log_joint_of_rows"]
