"""Learning by first-order rules, in a vector for each label.

``linear`` is the vector and its correction, ``instance`` the row that it takes; ``spaces``
hold all labels' numbers, a joint machine's among them; ``trials`` is the loop, ``linear_loop`` its
passes; ``linear_space`` is what models learn in and ask, ``label_blocks`` the same for more labels
than memory holds densely.
"""
