"""The main job: options, the session that holds the state of a search, its stages, its result and files."""
