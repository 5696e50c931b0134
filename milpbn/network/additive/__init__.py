"""Additive models of the log-odds of a network: main effects of single features, and effects of pairs.

The log-odds of a network of the class and discrete features are a sum of one table per family. Here the table of a
family is the sum of a main effect, on fine intervals, and of an interaction with the other features of the family,
on coarse ones: a generalised additive model with pairwise interactions (GA2M, Lou, Caruana, Gehrke and Hooker 2013).
Both are fitted by penalised conditional likelihood, and `milpbn.network.parameters.normalised` turns them into
probability tables.
"""
