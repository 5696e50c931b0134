"""Dual bounds at a node: points, steps, and multipliers of inequalities."""
