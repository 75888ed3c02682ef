"""Kernels, the support set, and vectors that are combinations of it."""
