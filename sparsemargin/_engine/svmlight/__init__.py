"""svmlight text: the scanner, and the way back."""
