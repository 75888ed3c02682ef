"""Trained models: state, outputs and probabilities."""
