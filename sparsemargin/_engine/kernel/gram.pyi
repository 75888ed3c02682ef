from typing import Any

# Fused functions: indexed by the names of their types before they are called.
fill_gram: Any
run_passes: Any
