"""Upper bounds by the project's own arithmetic: the Lagrangian dual of the margin rows, without a big LP."""
