"""Pictures of margins, corrections, certificates and features, in scikit-learn's Display style."""

from typing import TYPE_CHECKING

from sparsemargin._lazy import on_first_use

if TYPE_CHECKING:
    from .curves import EpochCurvesDisplay as EpochCurvesDisplay
    from .curves import GrowthCurve as GrowthCurve
    from .curves import GrowthDisplay as GrowthDisplay
    from .curves import HypothesisErrorsDisplay as HypothesisErrorsDisplay
    from .curves import TradeOffDisplay as TradeOffDisplay
    from .features import SelectionStabilityDisplay as SelectionStabilityDisplay
    from .features import StrongestFeaturesDisplay as StrongestFeaturesDisplay
    from .margins import CertificateDisplay as CertificateDisplay
    from .margins import MarginDistributionDisplay as MarginDistributionDisplay
    from .style import theme as theme

__all__, __getattr__, __dir__ = on_first_use(
    __name__,
    {
        "curves": (
            "EpochCurvesDisplay", "GrowthCurve", "GrowthDisplay", "HypothesisErrorsDisplay",
            "TradeOffDisplay",
        ),
        "features": ("SelectionStabilityDisplay", "StrongestFeaturesDisplay"),
        "margins": ("CertificateDisplay", "MarginDistributionDisplay"),
        "style": ("theme",),
    },
)  # fmt: skip
