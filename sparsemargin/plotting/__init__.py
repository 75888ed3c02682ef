"""Pictures of margins, corrections, certificates and features, in scikit-learn's Display style."""

from typing import TYPE_CHECKING

from sparsemargin._lazy import on_first_use

if TYPE_CHECKING:
    from sparsemargin.plotting.epochs import EpochCurvesDisplay, HypothesisErrorsDisplay
    from sparsemargin.plotting.features import SelectionStabilityDisplay, StrongestFeaturesDisplay
    from sparsemargin.plotting.growth import GrowthCurve, GrowthDisplay
    from sparsemargin.plotting.margins import CertificateDisplay, MarginDistributionDisplay
    from sparsemargin.plotting.style import theme
    from sparsemargin.plotting.trade_off import TradeOffDisplay

__all__ = [
    "CertificateDisplay",
    "EpochCurvesDisplay",
    "GrowthCurve",
    "GrowthDisplay",
    "HypothesisErrorsDisplay",
    "MarginDistributionDisplay",
    "SelectionStabilityDisplay",
    "StrongestFeaturesDisplay",
    "TradeOffDisplay",
    "theme",
]

_MODULES = ("style", "growth", "margins", "features", "trade_off", "epochs")
__getattr__, __dir__ = on_first_use(__name__, _MODULES, __all__)
