"""File access: local and remote sources, decompression, array archives and atomic writes."""
