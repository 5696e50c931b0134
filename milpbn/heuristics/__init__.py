"""Structures without proof: starts, local search, subtree exchange, spanning trees."""
