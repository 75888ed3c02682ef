"""First-order rules, and what learns by them.

``rules`` say how far to step and when; ``labels`` hold what is kept of each label, and ask the
rule; ``linear`` is the vector and its correction, ``instance`` the row that it takes; ``spaces``
are what Python sees of them, a joint machine's among them; ``trials`` is the loop, ``linear_loop``
its passes, ``label_blocks`` the same for more labels than memory holds densely.
"""
