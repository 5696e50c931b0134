"""Searches and studies on several machines, by Dask."""
