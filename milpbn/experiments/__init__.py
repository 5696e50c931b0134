"""Experiments of the papers as libraries: protocols, cells with keys, methods, tables, published numbers."""
