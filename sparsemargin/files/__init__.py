"""Where bytes come from and go to: local and remote sources, compression, atomic writes."""
