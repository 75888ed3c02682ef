"""Pictures of margins, corrections, certificates and features, in scikit-learn's Display style."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsemargin.plotting._certificate import CertificateDisplay
    from sparsemargin.plotting._epochs import EpochCurvesDisplay
    from sparsemargin.plotting._features import StrongestFeaturesDisplay
    from sparsemargin.plotting._growth import GrowthCurve, GrowthDisplay
    from sparsemargin.plotting._hypotheses import HypothesisErrorsDisplay
    from sparsemargin.plotting._margins import MarginDistributionDisplay
    from sparsemargin.plotting._stability import SelectionStabilityDisplay
    from sparsemargin.plotting._style import theme
    from sparsemargin.plotting._trade_off import TradeOffDisplay

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

_MODULES = {
    "CertificateDisplay": "_certificate",
    "EpochCurvesDisplay": "_epochs",
    "GrowthCurve": "_growth",
    "GrowthDisplay": "_growth",
    "HypothesisErrorsDisplay": "_hypotheses",
    "MarginDistributionDisplay": "_margins",
    "SelectionStabilityDisplay": "_stability",
    "StrongestFeaturesDisplay": "_features",
    "TradeOffDisplay": "_trade_off",
    "theme": "_style",
}


def __getattr__(name: str) -> Any:
    # On first use: what is measured for a picture needs scikit-learn, which is slow to import.
    if name in _MODULES:
        return getattr(import_module(f"sparsemargin.plotting.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'sparsemargin.plotting' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
