"""Leave out of the API reference what scikit-learn documents itself, and what users need not."""

from typing import Any

# Their docstrings link to places of scikit-learn's own documentation.
_ELSEWHERE = "sklearn."
_KEPT = {"get_params", "set_params", "score"}
# By these the command line and model files find learners and parameters.
_FOR_THE_LIBRARY = {"classifier", "parameter_names", "weighs_steps"}


def skip(app: Any, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Tell autodoc to skip a member; None where it may judge itself."""
    module = getattr(member, "__module__", None) or ""
    inherited = module.startswith(_ELSEWHERE) and name not in _KEPT
    routing = name.startswith("set_") and name.endswith("_request")
    # The docstring of a NamedTuple has its fields; those of the fields say "Alias for field 0".
    is_field = type(member).__name__ == "_tuplegetter"
    return True if inherited or routing or is_field or name in _FOR_THE_LIBRARY else None


def setup(app: Any) -> dict[str, bool]:
    """Register the rule."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
