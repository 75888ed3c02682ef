"""svmlight text: ``scan`` has the scanner, whose headers split text into lines, entries and
numbers, and the writer."""
