"""Oracles: maxima of linear functions over structures, exact or relaxed, and reduced costs."""
