from typing import Literal

class FirstOrderRule:
    needs_norm: bool
    @staticmethod
    def perceptron(p: float, normalize: bool) -> FirstOrderRule: ...
    @staticmethod
    def alma(
        p: float,
        normalize: bool | Literal["running", "max"],
        alpha: float,
        B: float,
        C: float,
        radius: float,
    ) -> FirstOrderRule: ...
