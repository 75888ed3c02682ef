from typing import Any

# Fused functions: indexed by the names of their types before they are called.
absorb_rows: Any
learn_rows: Any
outputs: Any
