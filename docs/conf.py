"""The documentation site: pages in Markdown, notebooks, references from the source; formulas in MathML, no request."""

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
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "auto"  # the notebooks have no output: they are executed when they are new or have changed
nb_execution_timeout = 300
nb_execution_raise_on_error = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Bools", "Floats", "Ints")}
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!latfit\.\w+$).*")]  # numpy, pandas and what is inside modules have no page
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
    """Docstrings are text with some markup: a bar is |x|, and the drawing of the pipeline belongs to the source."""
    if what == "module":
        del lines[1:]
    lines[:] = [line.replace("|", r"\|") if not line.lstrip().startswith((">>>", "...")) else line for line in lines]


def epilog(app, context, lines):
    """A star in an example is a star."""
    lines[:] = [line.replace("*", r"\*") for line in lines]


def notebooks(app, config):
    """The notebooks of the repository among the pages; what has not changed is not read again."""
    here = Path(app.srcdir)
    (here / "notebooks").mkdir(exist_ok=True)
    wanted = {path.name: path for path in (here.parent / "notebooks").glob("*.ipynb")}
    for old in (here / "notebooks").iterdir():
        if old.name not in wanted:
            old.unlink()
    for name, path in wanted.items():
        shutil.copy2(path, here / "notebooks" / name)


def generated(app, config):
    """Pages for each command and each public name, the live report, and the picture of worlds."""
    import click
    import matplotlib.pyplot as plt
    import numpy as np

    import latfit
    from latfit.cli import main
    from latfit.plots import STYLE
    from latfit.report import to_html

    here = Path(app.srcdir)
    texts = {}
    for name in main.summaries:
        command = main.get_command(click.Context(main), name)
        module = command.callback.__module__
        texts[f"commands/{name}.md"] = (
            f"# {name}\n\n```{{eval-rst}}\n.. click:: {module}:{name}\n   :prog: latfit {name}\n   :nested: full\n```\n"
        )
    for kind, name, rest in re.findall(DIRECTIVE, (here / "api.md").read_text(encoding="utf-8"), re.MULTILINE):
        directive = f".. {kind}:: {name}\n{rest}"
        texts[f"api/{name}.md"] = f"# {name}\n\n```{{eval-rst}}\n{directive}```\n"
    result = latfit.analyze(latfit.example_log())
    texts["extra/live-report.html"] = to_html(result)
    for name, text in texts.items():
        path = here / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    cutoff = result.decision.outliers.cutoff
    law = latfit.Empirical.of(result.decision.sample)
    times = np.geomspace(150, 3000, 200)
    done, waiting = law.cdf(times), float(latfit.expected_duration(law, cutoff))
    mean = latfit.expected_duration(law, times) * done + (1 - done) * waiting  # one cancellation, then waiting
    worst = waiting + (1 - done) * times  # what was spent on the first attempt is lost, and nothing gained
    worlds = [world for world in result.decision.evidence.worlds if world.ratio is not None]
    with plt.rc_context(STYLE):
        page, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left.plot(times, mean / waiting, label="if attempts are independent")
        left.plot(times, worst / waiting, "--", label="if every retry repeats the first attempt")
        left.axhline(1, color="grey", linewidth=0.8)
        left.axhline(1.3, color="grey", linestyle=":", label="the limit of --risk 30%")
        left.set(
            xscale="log",
            xlabel="cancel once after (s), then wait",
            ylabel="mean / waiting",
            title="Cancelling once can lose only so much",
        )
        left.legend(fontsize="small")
        right.barh([world.name for world in worlds], [world.ratio for world in worlds], color="#005F99")
        right.axvline(1, color="grey", linewidth=0.8)
        right.set(xlabel="mean / waiting at the schedule", title="The least favourable world decides")
        page.savefig(here / "generated" / "worlds.png", dpi=110)
        plt.close(page)


DIRECTIVE = r"^\.\. (auto(?!module)\w+):: (latfit\.\w+)\n((?:   .*\n)*)"


def paths(app, name, source):
    """Links of files that lie elsewhere in the repository: a notebook's to the pages, a page's to the notebooks."""
    if name.startswith("notebooks/"):
        source[0] = source[0].replace("](../docs/", "](../")
    else:
        source[0] = source[0].replace("](../notebooks/", "](notebooks/")
    if name == "api":  # a page for each public name; what is not one stays here

        def listed(block):
            names = re.findall(DIRECTIVE, block[1], re.MULTILINE)
            pages = "".join(f"generated/api/{name}\n" for _, name, _ in names)
            rest = re.sub(DIRECTIVE, "", block[1], flags=re.MULTILINE)
            return (f"```{{toctree}}\n:maxdepth: 1\n\n{pages}```\n\n" if pages else "") + (
                f"```{{eval-rst}}\n{rest}```" if rest.strip() else ""
            )

        source[0] = re.sub(r"```\{eval-rst\}\n(.*?)```", listed, source[0], flags=re.DOTALL)


def mathml(translator, node):
    """A formula as MathML, which browsers set without a script; a formula that cannot be read is a warning."""
    block = isinstance(node, nodes.math_block)
    opened = re.sub(r"\\(Big|big)(?=[(\[]|\\{)", r"\\\1l", node.astext())
    code = re.sub(r"\\(Big|big)(?=[)\]]|\\})", r"\\\1r", opened)
    try:
        made = tex2mathml(code, as_block=block)
    except MathError as problem:
        log.warning("formula %r: %s", code, problem, location=node)
        made = f"<code>{translator.encode(code)}</code>"
    translator.body.append(f'<div class="formula" tabindex="0">{made}</div>' if block else made)
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.connect("sphinx-click-process-epilog", epilog)
    app.connect("autodoc-process-docstring", plain)
    app.connect("config-inited", notebooks)
    app.connect("config-inited", generated)
    app.connect("source-read", paths)
    app.add_html_math_renderer("mathml", inline_renderers=(mathml, None), block_renderers=(mathml, None))
