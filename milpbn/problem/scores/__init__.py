"""The scores, one class in one file each, and the registry of their names."""
