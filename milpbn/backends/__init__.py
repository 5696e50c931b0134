"""The solvers behind one interface: `base` says what a backend is, `registry` finds one by its name."""
