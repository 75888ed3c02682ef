"""Perceptrons with a matrix of their mistakes: Higher-order and Second-order.

base.pyx
    `MatrixSpace`, what all share: a vector over a basis, its averages, counts and state.
    `DualSpace`, over the rows mistaken.
features.pxi
    `FeatureSpace`, over the features met, and trials over rows: a part of base.pyx.
higher_order.pyx, second_order.pyx
    What a mistake makes of the matrix and of w: over the features met, with the matrix implicit in
    stored rows or laid out n x n; and in dual variables.
sparse_products.hpp
    Rows over the features met, and products with them.
spaces.py
    The spaces of all labels.
loop.py
    Passes over rows.
"""
