"""Signals, limits and long loops of searches, by hand from the root of a checkout: ``python tests/faults/kill.py``.

`kill` sends signals at random instants, `limits` measures time limits and interrupts of all verbs, and `load` searches
for hours. Their results are in results/reliability/. `shared` is what they share.
"""
