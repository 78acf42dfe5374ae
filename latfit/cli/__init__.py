"""The command line: one command for each stage of the pipeline.

Every command parses, calls a library function or two, and renders. Libraries that are slow to
import are imported inside the commands, so that `latfit --help` is instant.
"""

from latfit.cli.agents import agents
from latfit.cli.analyze import analyze
from latfit.cli.common import Commands, version
from latfit.cli.convert import convert
from latfit.cli.fit import fit
from latfit.cli.formats import formats
from latfit.cli.laws import laws
from latfit.cli.outliers import outliers
from latfit.cli.plot import plot
from latfit.cli.timeout import timeout

main = Commands(
    name="latfit",
    help="""How long should I wait before I cancel and resubmit, and how much faster will I be?

    latfit reads logs of probe jobs or requests, estimates the share that never returns, and
    finds the timeout after which resubmitting pays.
    """,
    commands=[analyze, outliers, fit, timeout, agents, plot, convert, laws, formats],
    params=[version],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
