"""Learners that maximise generative scores."""
