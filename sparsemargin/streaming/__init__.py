"""Training and prediction on rows that are read from files block by block, in bounded memory."""
