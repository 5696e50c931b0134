"""Problems that ship with milpbn."""
