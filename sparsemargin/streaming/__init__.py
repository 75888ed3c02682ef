"""Training on a source of rows in bounded memory, and prediction of its rows."""
