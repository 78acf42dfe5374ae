"""Stage 2: read a log of any known format into one table, and into samples.

`read_log` gives the whole table; `read_samples` reads in chunks and keeps only the samples of the
groups, so its memory is bounded by the number of distinct latencies (and of ids, where a log has
them). Each format is one module here, which registers itself.
"""

import importlib
import pkgutil

from latfit.logs.convert import convert_log
from latfit.logs.formats import FORMATS, Format, ReadOptions
from latfit.logs.frames import as_log, as_sample, from_frame
from latfit.logs.histogram_format import HistogramLog, read_histograms
from latfit.logs.reading import example_log, iter_log, read_log, read_samples
from latfit.logs.table import LogFacts, ProbeLog, Refusal, Refusals, SampledLog

__all__ = [
    "FORMATS",
    "Format",
    "HistogramLog",
    "LogFacts",
    "ProbeLog",
    "ReadOptions",
    "Refusal",
    "Refusals",
    "SampledLog",
    "as_log",
    "as_sample",
    "convert_log",
    "example_log",
    "from_frame",
    "iter_log",
    "read_histograms",
    "read_log",
    "read_samples",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
