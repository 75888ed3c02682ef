"""Higher- and Second-order Perceptrons: vectors beside a matrix that grows with mistakes."""
