"""The engines of a search: the native engine, and an adapter that makes an engine of every MILP solver."""
