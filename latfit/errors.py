"""Every error that latfit raises on purpose.

LatfitError
├── LogError               a log cannot be read as it stands
│   ├── UnknownFormat      no reader recognises the content
│   ├── HistogramFound     the file holds histograms where probes were expected
│   ├── MissingColumn      a column that is needed, or was named, is not there
│   └── TooManyRefused     more rows were refused than the caller allows
├── SampleError            a sample cannot answer the question
├── LawError               a law, a law's parameter or a law specification is wrong
├── RestartError           a restart policy is wrong, or has no finite answer
├── ProbeError             a system cannot be probed as asked
└── FitError               a fit failed; the message carries what was reached

The message says what was found, where, why it is a problem and what to do.
The command line prints it as one line and exits with 1.
"""

import re
from collections.abc import Iterable
from typing import Any

# what a terminal takes as a command, what turns the direction of a line, and halves of characters
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """One line of text that is only shown, whatever a log or the name of a file holds."""
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def listed(names: Iterable[str], limit: int = 200) -> str:
    """Names for a message, cut short where a log has very many or very long ones."""
    text = ", ".join(names)
    return text if len(text) <= limit else text[: limit - 2] + " …"


class LatfitError(Exception):
    """Base of all errors that latfit raises on purpose."""


class LogError(LatfitError):
    """A log cannot be read as it stands."""


class UnknownFormat(LogError):
    """No reader recognises the content of a log."""


class HistogramFound(LogError):
    """A file that was to be read as a log of probes holds histograms, which `log` has."""

    def __init__(self, message: str, log: Any = None) -> None:
        super().__init__(message)
        self.log = log


class MissingColumn(LogError):
    """A column that is needed, or that was named, is not in the log."""


class TooManyRefused(LogError):
    """More rows were refused than the caller allows."""


class SampleError(LatfitError):
    """A sample cannot answer the question that it was asked."""


class LawError(LatfitError):
    """A law, a parameter of it or its specification is wrong."""


class RestartError(LatfitError):
    """A restart policy is wrong, or has no finite answer for this law."""


class FitError(LatfitError):
    """A fit did not succeed; the message carries what was reached."""


class ProbeError(LatfitError):
    """A system cannot be probed as asked: it is not there, or the log or the options do not allow it."""
