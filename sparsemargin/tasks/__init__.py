"""Estimators for whole tasks, from texts or cells to labels, and the loading of saved models."""
