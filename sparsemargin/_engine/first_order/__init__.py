"""First-order rules, and the linear space and joint machine that learn by them."""
