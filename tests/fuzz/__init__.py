"""Hostile input: generated files and option values through every reader, see `fuzz.campaign`."""
