"""Branch and cut over parent sets, for scores that are sums of one term per variable and its parent set."""
