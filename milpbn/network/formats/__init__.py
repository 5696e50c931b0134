"""File formats of classifiers and structures."""
