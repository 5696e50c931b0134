"""Heuristic learners of discriminative scores."""
