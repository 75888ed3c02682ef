"""Single-cell data as a source of rows: genes, labels, training and annotation."""
