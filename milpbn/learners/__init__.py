"""Heuristics and comparison learners: structures that solvers start from."""
