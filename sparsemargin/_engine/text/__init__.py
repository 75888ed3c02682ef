"""Texts made rows of counts: ``counting`` has the scanner, whose headers lower characters, cut
texts into tokens, number what they meet, and sort it."""
