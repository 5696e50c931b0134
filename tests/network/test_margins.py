import numpy as np

from milpbn.network import log_margins, log_posterior, soft_margin


def test_log_margins_by_hand():
    log_joint = np.log([[0.1, 0.2, 0.4], [0.4, 0.1, 0.2], [0.3, 0.3, 0.1]])
    original = log_joint.copy()
    margins = log_margins(log_joint, np.array([2, 2, 0]))
    np.testing.assert_allclose(margins, [np.log(2), -np.log(2), 0], rtol=1e-12)
    assert np.array_equal(log_joint, original)


def test_impossible_classes_have_infinite_margins_or_ties():
    inf = np.inf
    log_joint = np.array([[-inf, -inf], [-1.0, -inf], [-inf, -1.0]])
    assert log_margins(log_joint, np.array([0, 0, 0])).tolist() == [0.0, inf, -inf]


def test_soft_margin_caps_and_weighs():
    margins = np.array([-1.0, 0.5, 3.0, np.inf])
    assert soft_margin(margins, 2.0) == 3.5
    assert soft_margin(margins, 2.0, np.array([2.0, 1.0, 1.0, 3.0])) == 6.5


def test_log_posterior_is_normalised_and_uniform_without_evidence():
    log_joint = np.array([[-1000.0, -1001.0], [-np.inf, -np.inf], [-np.inf, -3.0]])
    posterior = np.exp(log_posterior(log_joint))
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(posterior[:, 0], [1 / (1 + np.exp(-1)), 0.5, 0.0], rtol=1e-14)
