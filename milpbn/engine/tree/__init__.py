"""Branch and bound: node, branching rule, node selection, bounding, expansion, primal heuristic, optima, search."""
