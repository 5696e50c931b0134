"""The solver-neutral MILP: formulation, cluster rows, and the files that other solvers read and write."""
