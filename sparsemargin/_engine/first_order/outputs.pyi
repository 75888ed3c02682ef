from typing import Any

# A fused function: indexed by the names of its types before it is called.
outputs: Any
