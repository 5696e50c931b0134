"""Scores: candidate parent sets, user constraints, coefficients, and re-scoring from the data."""
