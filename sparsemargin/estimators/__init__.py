"""Old name of `sparsemargin.models.classifiers`; for one release."""

import sys
import warnings

from sparsemargin._engine.first_order import linear_space, spaces
from sparsemargin._engine.kernel import loop, space
from sparsemargin.models import classifiers
from sparsemargin.models.classifiers import *  # noqa: F403

warnings.warn(
    "sparsemargin.estimators is now called sparsemargin.models.classifiers; the classes are in "
    "sparsemargin too. Import them from there, and save again what was pickled.",
    FutureWarning,
    stacklevel=2,
)

# By these names the classes, and what they learn in, were pickled.
for _kind in (linear_space.LinearSpace, linear_space.JointSpace):
    setattr(spaces, _kind.__name__, _kind)
space.KernelSpace = loop.KernelSpace  # type: ignore[attr-defined]
for _name in (
    "alma", "cramma", "higher_order", "margin_perceptron", "max_margin", "pnorm_perceptron",
    "romma", "second_order",
):  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = classifiers
