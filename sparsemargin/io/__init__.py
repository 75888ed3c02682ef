"""Files: svmlight text, row caches and models."""
