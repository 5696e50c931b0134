"""Trials: methods on parts of tables, and the store of what they found."""
