"""What the names of columns tell: which are those of a latency, a submission, an end, a status or an id."""

from __future__ import annotations

import re

from latfit.logs.words import name_words
from latfit.units import UNIT_WORDS

# names that mean one thing only, best guess first; compared in lower case without separators
GUESSES: dict[str, tuple[str, ...]] = {
    "latency": (
        "latency", "rtt", "roundtrip", "roundtriptime", "elapsed", "elapsedtime", "duration", "dur", "rt", "jobruntime",
        "responsetime",
        "response", "requesttime", "timetotal", "took", "wait", "waittime", "waitingtime", "turnaround",
        "turnaroundtime", "timetaken", "totaltime", "runtime", "delay", "upstreamresponsetime", "servicetime",
        "processingtime", "executiontime", "ttfb", "timetofirstbyte", "ping", "pingtime", "walltime", "wallclock",
        "wallclocktime", "queuetime", "queuewait", "eventduration",
        "seconds", "secs", "milliseconds", "microseconds", "ms",
    ),
    "submitted": (
        "submitted", "submit", "submittime", "submittedat", "submissiontime", "sent", "sentat", "started", "start",
        "starttime", "starttimeunix", "startedat", "created", "createdat", "queued", "queuedat", "requested",
        "timestamp", "time", "timeunix", "ts", "date", "datetime", "checkedat", "epoch", "unixtime", "unix", "when",
        "datecreated", "startdate", "creationdate", "creationtimestamp", "enqueued", "enqueuedat",
    ),
    "ended": (
        "ended", "end", "endtime", "endtimeunix", "endedat", "completedat", "completiontime", "finished", "finish",
        "finishtime", "finishedat", "returned", "returnedat", "received", "receivedat", "done", "doneat", "stop",
        "stopped", "stoppedat", "stoptime", "stopdate", "enddate", "datedone",
    ),
    "status": ("conclusion", "status", "state", "result", "outcome", "success", "ok"),
    "id": ("id", "probe", "probeid", "jobid", "requestid", "uuid", "taskid", "traceid"),
}  # fmt: skip
SUMMARY = re.compile(  # of many probes, or what was set
    r"p\d+|max|min|avg|mean|median|std|stdev|stddev|sum|timeout|limit|interval|ttl|cutoff|deadline|age|uptime|offset|budget|seen|window|period|range|cpu|cores|mem|memory|size|schedule|every|"
    r"backoff|refresh|per"
)
NUMBERED = re.compile("id|code|port|pid|ttl|offset|count|size|length|bytes|retries|level|version|number|line|lag")
TIMELIKE = re.compile("time|latency|duration|elapsed|rtt|wait|delay|response|took|dur|rt|lag")


def plain_name(name: str) -> tuple[str, str | None]:
    """A column's name without case, separators and unit, and the unit that it ends in.

    >>> plain_name("Response Time [ms]"), plain_name("rtt (µs)"), plain_name("startTimeUnixNano")
    (('responsetime', 'ms'), ('rtt', 'us'), ('starttimeunix', 'ns'))
    >>> plain_name("seconds"), plain_name("ms")  # a latency that is called by its unit
    (('seconds', 's'), ('ms', 'ms'))
    """
    words = name_words(name)
    words = words[:-3] if words[-3:] == ["hh", "mm", "ss"] else words
    unit = UNIT_WORDS.get(words[-1]) if words else None
    words = words[:-1] if unit and len(words) > 1 else words
    if unit and len(words) > 1 and words[-1] == "in":
        words = words[:-1]
    joined = "".join(words)
    if unit is None:  # latencyms
        for ending in ("ms", "us", "ns", "sec", "seconds"):
            if joined.removesuffix(ending) != joined and joined.removesuffix(ending) in GUESSES["latency"]:
                return joined.removesuffix(ending), UNIT_WORDS[ending]
    return joined, unit
