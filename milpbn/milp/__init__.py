"""The solver-neutral mixed integer linear program of a problem."""
