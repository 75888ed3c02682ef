from typing import Any

# Fused functions: indexed by the names of their types before they are called.
learn_rows: Any
outputs: Any
