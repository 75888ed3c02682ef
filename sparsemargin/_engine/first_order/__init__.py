"""The linear and joint spaces, and the loop of trials by first-order rules."""
