"""svmlight text: ``scan`` has the scanner; its headers split text into lines, entries and
numbers."""
