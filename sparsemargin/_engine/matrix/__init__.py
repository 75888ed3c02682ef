"""The Higher-order and Second-order Perceptrons, which keep a matrix built from mistakes."""
