"""Branch and bound: node, branching rule, node selection, bounding, children, expansion, climbs, optima, search."""
