"""Epochs, stopping, threads, progress, and the certificate of a margin."""
