"""Parameters of a given structure: generative, scaled by a temperature, or fitted to the conditional likelihood.

`refit.refit_classifier` is the way in. Its steps are `conditional` (the convex problem over the indicators of the
families), `folds` (kappa and the strength of the penalty), `normalised` (from weights to conditional probability
tables), and `nearest` (which of the tables with the same posteriors).
"""
