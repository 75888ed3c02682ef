from .explainer import Explanation as Explanation
from .explanations import explain_row as explain_row
from .weights import MarginDistribution as MarginDistribution
from .weights import margin_distribution as margin_distribution
from .weights import margins as margins
from .weights import top_features as top_features
