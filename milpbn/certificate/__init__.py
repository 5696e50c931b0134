"""Certificates of bounds: the file format, and two verifiers of such files."""
