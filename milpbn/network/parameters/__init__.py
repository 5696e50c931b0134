"""Parameters of a given structure: generative, scaled by a temperature, or fitted to the conditional likelihood.

`refit.refit_classifier` is the way in. Its steps are `design` (the indicators of the families), `conditional` (the
convex problem), `folds` (kappa and the strength of the penalty), and `normalised` (from weights to conditional
probability tables).
"""
