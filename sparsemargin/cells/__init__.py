"""Single cells as a source of rows: genes, labels, training and annotation."""
