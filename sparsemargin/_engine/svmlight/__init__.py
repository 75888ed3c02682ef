"""svmlight text: ``scan`` has the scanner, whose headers cut text into lines, entries and numbers,
and the way back."""
