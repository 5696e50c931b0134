"""Files of the program: .lp and .mps, starts, solutions, the sidecar, command lines of solvers."""
