from typing import Any

raise_powers: Any
fill_dense: Any
square_sums: Any
sparse_products: Any
