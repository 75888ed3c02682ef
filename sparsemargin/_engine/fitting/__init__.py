"""``epochs``: orders, stopping and what a fit tells; ``task``: what loops learn from, the driver of
their passes, and what models ask of spaces; ``threads``; and the ``certificate`` of a margin."""
