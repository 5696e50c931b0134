"""Slow, plain versions of the kernels, straight from the formulas of Roth & Pernkopf (2020, R20)."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from milpbn.learners.differentiable.gradients import make_work


def log_probabilities(data, layout, choices, theta, variable, number):
    """log p(x_v | x_pa, c) of all samples and classes, shape (M, C), of unnormalised log-probabilities."""
    parents = choices[variable][number]
    C, label = data.n_classes, data.n_features
    features = [j for j in parents if j != label]
    family = layout.first[variable] + number
    part = theta[layout.start[family] : layout.start[family + 1]]
    axes = [int(data.n_states[j]) for j in features]
    columns = [data.codes[:, j] for j in features]
    if variable == label:
        return log_softmax(part.reshape(*axes, C), axis=-1)[(*columns, slice(None))] + np.zeros(
            (len(data.y), C)
        )
    table = part.reshape(int(data.n_states[variable]), *axes, C if label in parents else 1)
    table = log_softmax(table, axis=0)[(data.codes[:, variable], *columns)]
    return np.broadcast_to(table, (len(data.y), C))


def log_joint(data, layout, choices, theta, s):
    """R20 (9) for any s, one number per family; shape (M, C)."""
    total = np.zeros((data.n_samples, data.n_classes))
    for v in range(data.n_variables):
        for n in range(len(choices[v])):
            weight = s[layout.first[v] + n]
            if weight != 0:
                total += weight * log_probabilities(data, layout, choices, theta, v, n)
    return total


def loss_of(name, logits, y, lambda_, gamma, eta):
    """R20 (5), (6), (8), and -log p(c | x)."""
    others = np.delete(logits, y)
    margin = logits[y] - logsumexp(eta * others) / eta
    nll, lm = -logits[y], max(0.0, gamma - margin)
    cll = logsumexp(logits) - logits[y]
    return {"nll": nll, "lm": lm, "hyb": nll + lambda_ * lm, "cll": cll}[name], gamma - margin


def mean_loss(data, layout, choices, theta, s, name, lambda_, gamma, eta):
    """Weighted mean of the losses, and how far the samples are from the kink of the margin."""
    logits = log_joint(data, layout, choices, theta, s)
    pairs = [loss_of(name, z, y, lambda_, gamma, eta) for z, y in zip(logits, data.y, strict=True)]
    return float(np.average([value for value, _ in pairs], weights=data.weights)), min(
        abs(k) for _, k in pairs
    )


def numerical(function, point, step=1e-5):
    """Central differences of a function at a point, one coordinate at a time."""
    out = np.empty(len(point))
    for k in range(len(point)):
        up, down = point.copy(), point.copy()
        up[k] += step
        down[k] -= step
        out[k] = (function(up) - function(down)) / (2 * step)
    return out


def softmax_tau(phi, noise, tau):
    """R20 (13)."""
    return softmax((phi + noise) / tau)


def load_batch(layout, data, dtype=np.float64):
    """Buffers with all of the data as the batch, weighted to a mean."""
    work = make_work(layout, data.n_samples, data.n_classes, dtype)
    work.codes[:] = data.codes.T
    work.scale[:] = data.weights / data.weights.sum()
    return work
