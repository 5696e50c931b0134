"""MILP solvers behind one interface."""
