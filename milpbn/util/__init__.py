"""Utilities for all layers: atomic files, time limits, interrupts, threads, memory, compiled kernels, validation."""
