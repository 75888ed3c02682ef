from .curves import EpochCurvesDisplay as EpochCurvesDisplay
from .curves import HypothesisErrorsDisplay as HypothesisErrorsDisplay
from .features import SelectionStabilityDisplay as SelectionStabilityDisplay
from .features import StrongestFeaturesDisplay as StrongestFeaturesDisplay
from .margins import CertificateDisplay as CertificateDisplay
from .margins import MarginDistributionDisplay as MarginDistributionDisplay
from .style import theme as theme
