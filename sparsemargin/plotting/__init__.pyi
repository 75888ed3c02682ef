from .coverage import CoverageCurve as CoverageCurve
from .coverage import CoverageDisplay as CoverageDisplay
from .features import StrongestFeaturesDisplay as StrongestFeaturesDisplay
from .margins import CertificateDisplay as CertificateDisplay
from .margins import MarginDistributionDisplay as MarginDistributionDisplay
from .style import theme as theme
