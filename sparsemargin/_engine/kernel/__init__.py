"""Kernels, the support set, and first-order rules in feature space."""
