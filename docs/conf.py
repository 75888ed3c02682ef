"""How Sphinx makes the documentation: `make docs`."""

import shutil
import sys
from pathlib import Path

import sparsemargin

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
NOTEBOOKS = DOCS / "notebooks"

sys.path += [str(DOCS / "_ext"), str(DOCS.parent)]

project = "sparsemargin"
author = "The sparsemargin developers"
copyright = "The sparsemargin developers"
version = release = sparsemargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "command_help",
    "dark_twins",
    "public_members",
    "site_only",
    "trimmed_blocks",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
# `name` in docstrings is a parameter or a public name: a link, where there is one to link to.
default_role = "obj"

# -- API reference -------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
toc_object_entries_show_parents = "hide"

# -- pages, notebooks and gallery ----------------------------------------------------------------

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# The offline copy is MathJax 3, which needs no telling which elements hold mathematics.
myst_update_mathjax = False

# Notebooks lie in examples/; Sphinx reads only what is below docs/.
shutil.rmtree(NOTEBOOKS, ignore_errors=True)
NOTEBOOKS.mkdir()
for _notebook in EXAMPLES.glob("*.ipynb"):
    shutil.copy2(_notebook, NOTEBOOKS)
# Their outputs are stored: `python examples/notebooks.py`.
nb_execution_mode = "off"

sphinx_gallery_conf = {
    "examples_dirs": str(EXAMPLES / "plots"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    # Pictures and what is printed; not what the last line happens to return.
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    # Their pages would load scripts from elsewhere.
    "write_computation_times": False,
    "min_reported_time": 1e9,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- looks -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "sparsemargin"
# Without it, the theme reports an invalid mode on the first visit.
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["sparsemargin.css"]
html_show_sourcelink = False
# Pages that are no part of a section have no list of its pages.
html_sidebars = {
    page: []
    for page in (
        "getting_started",
        "performance",
        "development/architecture",
        "development/performance",
        "development/scale",
        "exactness",
        "contributing",
        "releasing",
        "changelog",
    )
}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
