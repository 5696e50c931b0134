"""Differentiable TAN of Roth & Pernkopf (2020): structures and parameters learnt by gradient descent."""
