"""Conversion of texts to rows: ``counting`` counts features, which its headers find, number and
sort; ``weighing`` renumbers columns and applies TF-IDF."""
