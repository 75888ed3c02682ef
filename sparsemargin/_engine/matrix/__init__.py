"""Perceptrons with a matrix of their mistakes: Higher-order and Second-order."""
