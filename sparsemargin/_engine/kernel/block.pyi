from typing import Any

learn_block: Any
