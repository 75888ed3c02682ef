"""CSR rows: checks, norms, sparse dot products."""
