"""The papers' bounds as functions of numbers: what a run must keep to, whatever the data.

One module for each paper. Margins, radii and deviations are in one unit, that of the rows the rule
works on: rows divided by their p-norm for ALMA and the Higher-order Perceptron, rows as they are
for the others. Arguments outside of the range that is stated raise a ValueError that names them.
"""

from papers.theory.alma import (
    alma_alpha,
    alma_constants,
    alma_corrections,
    alma_corrections_inseparable,
    alma_corrections_repaired,
    alma_margin_estimate,
    alma_margin_reached,
)
from papers.theory.cramma import (
    automatic_rate,
    cramma_corrections,
    cramma_margin_fraction,
    cramma_rate_limit,
    geometric_margin_range,
    least_soft_margin,
)
from papers.theory.higher_order import (
    HigherOrderRun,
    higher_order_mistakes,
    tightest_higher_order_bound,
)
from papers.theory.perceptron import (
    best_soft_margin,
    deviations,
    perceptron_mistakes,
    tightest_mistake_bound,
    voted_perceptron_error,
)

__all__ = [
    "HigherOrderRun",
    "alma_alpha",
    "alma_constants",
    "alma_corrections",
    "alma_corrections_inseparable",
    "alma_corrections_repaired",
    "alma_margin_estimate",
    "alma_margin_reached",
    "automatic_rate",
    "best_soft_margin",
    "cramma_corrections",
    "cramma_margin_fraction",
    "cramma_rate_limit",
    "deviations",
    "geometric_margin_range",
    "higher_order_mistakes",
    "least_soft_margin",
    "perceptron_mistakes",
    "tightest_higher_order_bound",
    "tightest_mistake_bound",
    "voted_perceptron_error",
]
