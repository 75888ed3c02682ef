"""CSR rows: ``csr`` has typed access, checks and norms; ``scores`` has dot products of rows with
one or more weight vectors."""
