"""Code that several solvers share: child processes, guards, audit and canary models, repairs, integer relaxations."""
