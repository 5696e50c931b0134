"""Branch and bound: node, branching rule, node selection, bounding, split, expansion, climbs, optima, search."""
