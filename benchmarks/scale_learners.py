"""The learners that the benchmarks of sparsemargin.distributed compare."""

from typing import Any

PLAIN: dict[str, Any] = {"fit_intercept": False}
#: By the names that reports give them: what `fit_csr` and `fit_distributed` are told.
FIRST_ORDER: dict[str, dict[str, Any]] = {
    "p-norm, p=2": PLAIN | {"algo": "pnorm", "p": 2},
    "p-norm, p=6": PLAIN | {"algo": "pnorm", "p": 6},
    "ALMA, p=2": PLAIN | {"algo": "alma", "p": 2},
    "ALMA, p=6": PLAIN | {"algo": "alma", "p": 6},
}
SECOND_ORDER: dict[str, dict[str, Any]] = {
    "Second-order": PLAIN | {"algo": "so", "max_updates": None}
}
SEED = 0
