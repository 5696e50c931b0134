"""Monotone features: what a user asks for, whether a classifier has it, and how weights get it.

`constraints` reads what is asked for, `changes` finds how the log-odds change along a column and makes up for negative
changes, `check` says whether a classifier is monotone, and `inequalities` minimises losses of monotone models.
"""
