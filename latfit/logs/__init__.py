"""Stage 3: read a log of any known format into one table. Each format is one module here, which registers itself."""

import importlib
import pkgutil

from latfit.logs.formats import FORMATS, Format, ReadOptions
from latfit.logs.frames import as_log, as_sample, convert_log, from_frame
from latfit.logs.histogram_format import HistogramLog
from latfit.logs.reading import example_log, open_log, read_histograms, read_log
from latfit.table import LogFacts, ProbeLog, Refusal, Refusals

__all__ = [
    "FORMATS",
    "Format",
    "HistogramLog",
    "LogFacts",
    "ProbeLog",
    "ReadOptions",
    "Refusal",
    "Refusals",
    "as_log",
    "as_sample",
    "convert_log",
    "example_log",
    "from_frame",
    "open_log",
    "read_histograms",
    "read_log",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
