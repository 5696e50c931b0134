"""The problem that is maximised: candidate parent sets, constraints, coefficients, and re-scoring from the data."""
