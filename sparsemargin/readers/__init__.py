"""Sources of labelled rows: svmlight text, texts, tables, files of cells, and the row cache."""
