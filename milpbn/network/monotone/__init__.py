"""Monotone features: what a user wishes, whether a classifier has it, and how weights get it.

`wishes` reads what is asked for, `changes` finds how the log-odds change along a column and makes up for negative
changes, `check` says whether a classifier is monotone, and `inequalities` minimises losses of monotone models.
"""
