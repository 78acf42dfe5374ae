"""The documentation site: pages in Markdown, the command and the API reference from the source, no outside request."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

project, author = "latfit", "The latfit authors"
release = version = metadata.version("latfit")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "examples", "README.md"]
default_role = "code"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, which are no pages
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "
linkcheck_ignore = [r"https?://.*"]
html_theme = "pydata_sphinx_theme"
html_title = "latfit"
html_theme_options = {"navigation_with_keys": False, "show_prev_next": False, "footer_end": []}
html_show_sourcelink = False


def plain(app, what, name, obj, options, lines):
    """Docstrings are text with some markup: a bar is |x|, and the drawing of the pipeline belongs to the source."""
    if what == "module":
        del lines[1:]
    lines[:] = [line.replace("|", r"\|") if not line.lstrip().startswith((">>>", "...")) else line for line in lines]


def epilog(app, context, lines):
    """A star in an example is a star."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def setup(app):
    """Called by Sphinx."""
    app.connect("sphinx-click-process-epilog", epilog)
    app.connect("autodoc-process-docstring", plain)
