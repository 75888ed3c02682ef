"""Leave out of the API reference what scikit-learn documents itself, and what users need not."""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.autosummary import autosummary_table

# Their docstrings link to places of scikit-learn's own documentation.
_ELSEWHERE = "sklearn."
_KEPT = {"get_params", "set_params"}
# Methods for the other layers of the library. Fitted attributes, which end in "_", are for users.
_LAYER = "sparsemargin.models."
_FOR_THE_LIBRARY = {
    "agreed", "check_probabilities", "check_restored", "check_test_rows", "classifier",
    "compiled_vocabulary", "conversion_of", "fit_files", "fitted_vectorizers", "for_model",
    "gamma_for", "keep", "keep_statistics", "n_columns", "next_training_set", "normalised",
    "of_parts", "parameter_names", "remember_terms", "restored", "saved_wrapper", "scale",
    "set_fitted", "texts_of", "training_set", "vectorizers", "weighs_steps",
}  # fmt: skip


def skip(app: Any, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Tell autodoc to skip a member; None where it may judge itself."""
    module = getattr(getattr(member, "fget", member), "__module__", None) or ""
    inherited = module.startswith(_ELSEWHERE) and name not in _KEPT
    of_a_layer = module.startswith(_LAYER) and what == "class" and not name.endswith("_")
    routing = name.startswith("set_") and name.endswith("_request")
    # The docstring of a NamedTuple has its fields; those of the fields say "Alias for field 0".
    is_field = type(member).__name__ == "_tuplegetter"
    for_the_library = of_a_layer or name in _FOR_THE_LIBRARY
    return True if inherited or for_the_library or routing or is_field else None


def drop_citations(app: Any, doctree: nodes.document) -> None:
    """Drop references to papers from the tables of names, where their labels are no numbers."""
    for table in doctree.findall(autosummary_table):
        for citation in list(table.findall(pending_xref)):
            if citation["refdomain"] == "citation":
                paragraph = citation.parent
                before = paragraph[paragraph.index(citation) - 1]
                if isinstance(before, nodes.Text):
                    paragraph.replace(before, nodes.Text(before.rstrip(" ,")))
                paragraph.remove(citation)


def setup(app: Any) -> dict[str, bool]:
    """Register the rules."""
    app.connect("autodoc-skip-member", skip)
    app.connect("doctree-read", drop_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
