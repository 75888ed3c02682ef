"""Kernels for the parameter `kernel` of the classifiers.

>>> from sparsemargin import MarginPerceptron
>>> from sparsemargin.kernels import Polynomial
>>> MarginPerceptron(kernel=Polynomial(degree=4, gamma=0.1))
MarginPerceptron(kernel=Polynomial(degree=4, gamma=0.1))
"""

from sparsemargin.models.kernels import RBF, Function, Polynomial, PolynomialRBF, Precomputed

__all__ = ["RBF", "Function", "Polynomial", "PolynomialRBF", "Precomputed"]
