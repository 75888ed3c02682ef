from typing import Any, Literal

class FirstOrderRule:
    measures_rows: bool
    keeps_multipliers: bool
    @staticmethod
    def perceptron(
        p: float, normalize: bool, margin: float = 0.0, eta: float = 1.0
    ) -> FirstOrderRule: ...
    @staticmethod
    def alma(
        p: float,
        normalize: bool | Literal["running", "max"],
        alpha: float,
        B: float,
        C: float,
        radius: float,
    ) -> FirstOrderRule: ...
    @staticmethod
    def cramma(beta: float, eta_eff: float, epsilon: float, radius: float) -> FirstOrderRule: ...
    @staticmethod
    def romma(aggressive: bool) -> FirstOrderRule: ...
    @staticmethod
    def ascent(p: float, normalize: bool) -> FirstOrderRule: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...
