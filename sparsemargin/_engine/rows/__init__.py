"""CSR rows: ``csr`` has them as typed values, checks and measures them; ``scores`` are their dot
products with the weights of labels, one or many side by side."""
