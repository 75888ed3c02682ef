"""The five papers whose tables and figures there are recipes for."""

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper: its name in short, and its source."""

    short: str
    source: str


ALMA = Paper(
    "Gentile (2001)",
    'C. Gentile, "A New Approximate Maximal Margin Classification Algorithm", Journal of Machine '
    "Learning Research 2 (2001), 213-242",
)
ALMA_CONFERENCE = Paper(
    "Gentile (2000)",
    'C. Gentile, "A New Approximate Maximal Margin Classification Algorithm", Advances in Neural '
    "Information Processing Systems 13 (2000), 500-506",
)
VOTED = Paper(
    "Freund & Schapire (1999)",
    'Y. Freund and R. E. Schapire, "Large Margin Classification Using the Perceptron Algorithm", '
    "Machine Learning 37 (1999), 277-296",
)
HIGHER_ORDER = Paper(
    "Brotto, Gentile & Vitale (2007)",
    'C. Brotto, C. Gentile and F. Vitale, "On Higher-Order Perceptron Algorithms", Advances in '
    "Neural Information Processing Systems 20 (2007)",
)
CRAMMA = Paper(
    "Tsampouka & Shawe-Taylor (2006)",
    'P. Tsampouka and J. Shawe-Taylor, "Constant Rate Approximate Maximum Margin Algorithms", '
    "Machine Learning: ECML 2006, 437-448",
)

#: In the order in which they are reported.
PAPERS = (ALMA, ALMA_CONFERENCE, VOTED, HIGHER_ORDER, CRAMMA)
