"""Learners that exact structures are compared with, and from whose structures a search can start."""
