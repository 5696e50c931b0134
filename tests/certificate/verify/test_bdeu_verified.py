"""The verifier's terms of BDeu: their rounding errors, and that they are those of the search."""

import mpmath
import numpy as np
from running import random_data

from milpbn.certificate.verify.bdeu import bdeu_term, rise
from milpbn.claims.parts import SAME_NUMBER
from milpbn.problem.scores.bdeu import Bdeu

EPS = np.finfo(float).eps


def test_rises_are_differences_of_log_gamma():
    rng = np.random.default_rng(0)
    x, y = 10 ** rng.uniform(-12, 10, 1000), 10 ** rng.uniform(-12, 12, 1000)
    y[:20] = 0
    values, sizes = rise(x, y)
    with mpmath.workprec(200):
        for a, b, value, size in zip(x, y, values, sizes, strict=True):
            exact = mpmath.loggamma(mpmath.mpf(a) + mpmath.mpf(b)) - mpmath.loggamma(mpmath.mpf(a))
            assert abs(value - exact) <= 32 * EPS * size


def test_terms_are_those_of_the_search_and_their_errors_are_between_its_own_and_what_it_allows_for():
    for seed in range(20):
        data = random_data(seed, n_features=4, weights=True, n_samples=30)
        for ess in (1e-3, 1.0, 655.0, 1e3):
            for i, parents in ((0, ()), (0, (1,)), (4, (0, 1, 2)), (2, (0, 1, 4))):
                value, size = Bdeu(equivalent_sample_size=ess).family(data, i, parents)
                own, own_size = bdeu_term(data, i, parents, ess)
                assert abs(own - value) <= 8 * EPS * size
                # The search adds four times its own error, and states a tolerance for one.
                assert size * (1 - SAME_NUMBER) <= own_size <= 2 * size
