"""Verification of certificates by code that is independent of the search."""
