"""Every error that latfit raises on purpose.

LatfitError
├── LogError               a log cannot be read
│   ├── UnknownFormat      no reader recognises the content
│   ├── MissingColumn      a column that is needed, or was named, is not there
│   └── TooManyRefused     more rows were refused than the caller allows
├── SampleError            a sample does not allow the requested computation
├── LawError               a law, one of its parameters or its specification is invalid
├── RestartError           a restart policy is invalid, or has no finite answer
├── ProbeError             a system cannot be probed as requested
└── FitError               a fit failed; the message says how far it got

A message says what is wrong, where, why it matters and what to do.
The command line prints it as one line and exits with 1.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

# terminal control characters, text direction marks and lone surrogates
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Text as one line that is safe to print, whatever a log or a file name contains."""
    return UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def listed(names: Iterable[str], limit: int = 200) -> str:
    """Names for a message, shortened if the list is long."""
    text = ", ".join(names)
    return text if len(text) <= limit else text[: limit - 2] + " …"


def counted(count: int, noun: str, one: str = "", more: str = "") -> str:
    """A number of things, optionally with a verb for one, or for none and more.

    >>> counted(1, "row"), counted(0, "row"), counted(1, "row", "was", "were"), counted(3, "row", "was", "were")
    ('1 row', '0 rows', '1 row was', '3 rows were')
    """
    return f"{count} {noun}{'' if count == 1 else 's'} {one if count == 1 else more}".rstrip()


def none_of(count: int, noun: str) -> str:
    """The negative subject of a sentence about a number of things.

    >>> none_of(1, "row"), none_of(3, "row")
    ('not even the one row', 'none of the 3 rows')
    """
    return f"not even the one {noun}" if count == 1 else f"none of the {counted(count, noun)}"


class LatfitError(Exception):
    """Base of all errors that latfit raises on purpose.

    >>> import latfit
    >>> latfit.parse_duration("soon")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    latfit.errors.LatfitError: 'soon' is not a duration; write seconds...
    """


class LogError(LatfitError):
    """A log cannot be read.

    >>> import latfit
    >>> latfit.read_log("absent.csv")
    Traceback (most recent call last):
        ...
    latfit.errors.LogError: absent.csv: there is no such file
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        if re.search("--(column|max-refused|status|time|unit)", message):  # shown in tracebacks, not by commands
            self.add_note(
                'In Python these options are arguments: from_frame(frame, latency="NAME", status="NAME", unit="ms"), '
                'read_log(path, columns={"latency": "NAME"}, statuses={"down": "lost"}, unit="ms")'
            )


class UnknownFormat(LogError):
    """No reader recognises the content of a log.

    >>> import latfit
    >>> latfit.read_log(latfit.__file__, format="tea")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    latfit.errors.UnknownFormat: 'tea' is not a log format; choose from ...
    """


class MissingColumn(LogError):
    """A required column, or one that was named, is not in the log.

    >>> import latfit, pandas
    >>> latfit.from_frame(pandas.DataFrame({"site": ["a"]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    latfit.errors.MissingColumn: ...
    """


class TooManyRefused(LogError):
    """More rows were refused than the caller allows.

    >>> import latfit, pandas
    >>> latfit.from_frame(pandas.DataFrame({"latency": [-1.0, -2.0, 3.0]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    latfit.errors.TooManyRefused: ...
    """


class SampleError(LatfitError):
    """A sample does not allow the requested computation.

    >>> import latfit
    >>> latfit.outlier_ratio([])
    Traceback (most recent call last):
        ...
    latfit.errors.SampleError: the sample is empty: there is no outlier ratio
    """


class LawError(LatfitError):
    """A law, one of its parameters or its specification is invalid.

    >>> import latfit
    >>> latfit.parse_law("lognormal(mu=5.5)")
    Traceback (most recent call last):
        ...
    latfit.errors.LawError: lognormal lacks sigma: write lognormal(mu=…,sigma=…)
    """


class RestartError(LatfitError):
    """A restart policy is invalid, or has no finite answer for this law.

    >>> import latfit
    >>> latfit.expected_duration(latfit.parse_law("exponential(rate=1)"), 1.0, cost=-1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    latfit.errors.RestartError: the cost is -1.0; it must be a finite...
    """


class FitError(LatfitError):
    """A fit failed; the message says how far it got.

    >>> import latfit
    >>> latfit.fit([1.0, 2.0], method="guess")
    Traceback (most recent call last):
        ...
    latfit.errors.FitError: the method is 'guess'; it must be mle or ls
    """


class ProbeError(LatfitError):
    """A system cannot be probed as requested: it is unreachable, or the log or the options do not allow it."""


def hint(name: str, known: Iterable[str]) -> str:
    """The known name closest to a misspelt one, as the end of a message."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
