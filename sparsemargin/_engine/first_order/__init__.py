"""The linear and joint spaces, and the training loop of first-order rules."""
