"""The documentation site: Markdown pages, notebooks and references; formulas as MathML; no external requests."""

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parent.parent))

project, author = "latfit", "The latfit authors"
release = version = metadata.version("latfit")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "examples", "README.md"]
default_role = "code"
smartquotes = False  # options keep their two dashes
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "auto"  # execute notebooks when they are new or have changed: they are stored without output
nb_execution_timeout = 300
nb_execution_raise_on_error = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Bools", "Floats", "Ints")}
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!latfit\.\w+$).*")]  # numpy, pandas and names inside modules have no page
copybutton_prompt_text = "$ "
linkcheck_ignore = [r"https?://.*"]
html_theme = "pydata_sphinx_theme"
html_title = "latfit"
maximum_signature_line_length = 90
templates_path = ["_templates"]
html_sidebars = {"**": ["pages.html"]}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/extra"]
html_math_renderer = "mathml"
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_end": [],
    "navbar_center": [],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_show_sourcelink = False
html_copy_source = False
log = logging.getLogger(__name__)


def plain(app, what, name, obj, options, lines):
    """Escape bars (|x|) in docstrings, and keep only the first line of a module's docstring."""
    if what == "module":
        del lines[1:]
    lines[:] = [line.replace("|", r"\|") if not line.lstrip().startswith((">>>", "...")) else line for line in lines]


def epilog(app, context, lines):
    """Escape stars in the examples of commands."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def notebooks(app, config):
    """Copy the notebooks into the source folder; times are kept, so unchanged ones are not executed again."""
    here = Path(app.srcdir)
    (here / "notebooks").mkdir(exist_ok=True)
    wanted = {path.name: path for path in (here.parent / "notebooks").glob("*.ipynb")}
    for old in (here / "notebooks").iterdir():
        if old.name not in wanted:
            old.unlink()
    for name, path in wanted.items():
        shutil.copy2(path, here / "notebooks" / name)


def generated(app, config):
    """Write a page for each command and each public name, and the live report."""
    import click

    import latfit
    from latfit.cli import main
    from latfit.report import to_html

    here = Path(app.srcdir)
    texts = {}
    for name in main.modules:
        command = main.get_command(click.Context(main), name)
        module = command.callback.__module__
        texts[f"commands/{name}.rst"] = f".. click:: {module}:{name}\n   :prog: latfit {name}\n   :nested: full\n"
    for kind, name, rest in re.findall(DIRECTIVE, (here / "api.md").read_text(encoding="utf-8"), re.MULTILINE):
        directive = f".. {kind}:: {name}\n{rest}"
        texts[f"api/{name}.md"] = f"# {name}\n\n```{{eval-rst}}\n{directive}```\n"
    texts["extra/live-report.html"] = to_html(latfit.analyze(latfit.example_log()))
    for name, text in texts.items():
        path = here / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


DIRECTIVE = r"^\.\. (auto(?!module)\w+):: (latfit\.\w+)\n((?:   .*\n)*)"


def paths(app, name, source):
    """Adjust links between notebooks and pages, and replace the entries of api.md by a page for each public name."""
    if name.startswith("notebooks/"):
        source[0] = source[0].replace("](../docs/", "](../")
    else:
        source[0] = source[0].replace("](../notebooks/", "](notebooks/")
    if name == "api":  # entries that are not public names stay on the page

        def listed(block):
            names = re.findall(DIRECTIVE, block[1], re.MULTILINE)
            pages = "".join(f"generated/api/{name}\n" for _, name, _ in names)
            rest = re.sub(DIRECTIVE, "", block[1], flags=re.MULTILINE)
            return (f"```{{toctree}}\n:maxdepth: 1\n\n{pages}```\n\n" if pages else "") + (
                f"```{{eval-rst}}\n{rest}```" if rest.strip() else ""
            )

        source[0] = re.sub(r"```\{eval-rst\}\n(.*?)```", listed, source[0], flags=re.DOTALL)


def mathml(translator, node):
    """Render a formula as MathML, which needs no script; a formula that cannot be parsed is a warning."""
    block = isinstance(node, nodes.math_block)
    opened = re.sub(r"\\(Big|big)(?=[(\[]|\\{)", r"\\\1l", node.astext())
    code = re.sub(r"\\(Big|big)(?=[)\]]|\\})", r"\\\1r", opened)
    try:
        markup = tex2mathml(code, as_block=block)
    except MathError as problem:
        log.warning("formula %r: %s", code, problem, location=node)
        markup = f"<code>{translator.encode(code)}</code>"
    translator.body.append(f'<div class="formula" tabindex="0">{markup}</div>' if block else markup)
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.connect("sphinx-click-process-epilog", epilog)
    app.connect("autodoc-process-docstring", plain)
    app.connect("config-inited", notebooks)
    app.connect("config-inited", generated)
    app.connect("source-read", paths)
    app.add_html_math_renderer("mathml", inline_renderers=(mathml, None), block_renderers=(mathml, None))
