from typing import Any

# Fused functions: indexed by the names of their types before they are called.
bad_pointer: Any
first_bad_row: Any
row_norms: Any
