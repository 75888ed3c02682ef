"""Code shared by all first-order learners: rules, per-vector state, and the correction log."""
