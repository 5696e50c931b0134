"""The native engine: dual bounds, and branch and bound with them."""
