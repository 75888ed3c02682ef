"""``epochs``: orders, stopping and what a fit tells; ``task``: what loops learn from, and the
driver of their passes; ``threads``; and the ``certificate`` of a margin."""
