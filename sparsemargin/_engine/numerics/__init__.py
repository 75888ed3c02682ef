"""Numerical building blocks: powers, exact sums, averages and vectorized loops."""
