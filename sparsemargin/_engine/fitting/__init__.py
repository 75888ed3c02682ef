"""Epochs, stopping, threads, and the certificate of a margin."""
