"""A seed to a case: a damaged log, a damaged law or damaged options, and the command that meets it."""

import random
from dataclasses import dataclass, replace

from conftest import DATA, EGEE
from fuzzing import histograms, page, probes, requests, states, words
from fuzzing.count import count_rows
from fuzzing.logs import MAKERS, TextLog
from fuzzing.mutate import BYTES, FIELDS, LINES, NUMBERS, PACKINGS, TEXTS, TIMES, WRECKS, nasty
from fuzzing.tables import parquet
from latfit.laws import get_law, law_names
from latfit.logs.formats import FORMATS

MAKERS = MAKERS | requests.MAKERS | histograms.MAKERS | probes.MAKERS
LOGS = (*MAKERS, "parquet", "fixture")
WORDS = tuple(words.MAKERS)
STATES = tuple(states.KINDS)
KINDS = (*LOGS, "law", "options", *WORDS, *STATES, "page")
OFTEN = {**dict.fromkeys(LOGS, 2.0), "csv": 6, "fixture": 6, "law": 6, "options": 10, **dict.fromkeys(WORDS, 1.5),
         **dict.fromkeys(STATES, 2), "page": 0.5}  # fmt: skip
ALL_LAWS = 0.02  # the share of cases in which every law is tried, which takes long
AGREE = "@agree"  # no command: four ways to one decision
LOG, OUTPUT = "{log}", "{output}"  # stand for the paths of the log and of what is written
PARAMETERS = (
    "1", "0.5", "2", "100", "1e-9", "1e9", "1e300", "1e-300", "1e308", "1e-320", "0", "-1", "3.7", "nan", "1e17",
)  # fmt: skip
PATTERNS = (
    r"(?P<latency>[\d.]+)", r"took (?P<took>\S+)", r"^(?P<when>\S+) .*took (?P<latency>\S+)",
    r"task (?P<id>\S+) (?P<status>done|failed|lost)(?:, took (?P<latency>\S+))?", r"(?P<site>\w) (?P<status>\w+)",
)  # fmt: skip
ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PAR1")  # how what is no text begins
FIXTURES = sorted(path for path in DATA.iterdir() if path.is_file())


@dataclass(frozen=True)
class Case:
    """What to run and on what; `rows` is the number of records, None where that is a matter of opinion.

    `plain` is the same log before it was packed (gzip, UTF-16): it must be read alike. `every_law`: whether every law
    is tried that is tried unasked, or one of them.
    """

    seed: int
    kind: str
    damage: tuple[str, ...]
    arguments: tuple[str, ...]
    content: bytes = b""
    format: str | None = None
    rows: int | None = None
    plain: bytes | None = None
    every_law: bool = False


def make_case(seed: int, kind: str | None = None) -> Case:
    """The case of a seed, always the same until this package changes."""
    rng = random.Random(seed)
    kind = kind or rng.choices(KINDS, [OFTEN[each] for each in KINDS])[0]
    made = _made(seed, kind, rng)
    return replace(made, every_law=rng.random() < ALL_LAWS)


def _made(seed: int, kind: str, rng: random.Random) -> Case:
    if kind in WORDS:
        text = words.MAKERS[kind](rng)
        return Case(seed, kind, (text,), words.arguments(kind, text, rng))
    if kind in STATES:
        return Case(seed, kind, (), (), states.KINDS[kind][0](rng))
    if kind == "page":
        return Case(seed, kind, (), (), page.content(rng))
    if kind == "law":
        return Case(seed, kind, (), _law_arguments(rng))
    if kind == "options":
        return _options(seed, rng)
    if kind == "parquet":
        return _parquet(seed, rng)
    return _text(seed, kind, rng)


def _text(seed: int, kind: str, rng: random.Random) -> Case:
    """A log of lines; its records are counted on the damaged text."""
    if kind == "fixture":
        path = rng.choice(FIXTURES)
        log = taken_apart(path.read_text(), path.name)
    else:
        log = MAKERS[kind](rng, rng.choice((1, 3, 8, 20, 40)))
    damage = []
    original = TextLog(log.format, list(log.head), [list(row) for row in log.rows], log.separator, log.opening,
                       log.closing, log.header)  # fmt: skip
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        name = rng.choice(list(FIELDS))
        FIELDS[name](log, rng)
        damage.append(name)
    lines = log.lines()
    for _ in range(rng.choice((0, 0, 1, 1, 3))):
        name = rng.choices(list(LINES), [1 if name.startswith("long") else 6 for name in LINES])[0]
        if lines:
            LINES[name](lines, rng)
            damage.append(name)
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r", "mixed"))
    text = "".join(line + (rng.choice(("\n", "\r\n", "\r")) if end == "mixed" else end) for line in lines)
    data = bytearray(text.removesuffix("\n" if rng.random() < 0.3 else "").encode("utf-8", "surrogatepass"))
    if data and rng.random() < 0.3:
        name = rng.choice(list(BYTES))
        BYTES[name](data, rng)
        damage.append(name)
    content, plain = bytes(data), None
    no_rows = kind in histograms.MAKERS or log.format in probes.UNCOUNTED
    rows = None if no_rows else count_rows(original, content)
    packed = _packed(content, rng)
    if packed is not None:
        name, packed_content = packed
        damage.append(name)
        alike = name in PACKINGS and not content.startswith(ARCHIVES)
        content, plain, rows = packed_content, content if alike else None, rows if name in PACKINGS else None
    known = log.format if rng.random() < 0.3 or log.format == "pattern" else None
    takes = histograms.arguments(rng, LOG, OUTPUT, known) if kind in histograms.MAKERS else _log_arguments(rng, known)
    return Case(seed, kind, tuple(damage), takes, content, log.format, rows, plain)


def taken_apart(text: str, name: str) -> TextLog:
    """A log of the test suite, taken apart at its white space or delimiters."""
    formats = {"tsv": "csv", "jtl": "jmeter", "txt": "sacct", "log": "htcondor"}
    kind = formats.get(name.rsplit(".", 1)[1], name.rsplit(".", 1)[1])
    separators = {"csv": "\t" if name.endswith("tsv") else ",", "jmeter": ",", "sacct": "|", "gwf": "\t"}
    separator = (separators | requests.SEPARATORS).get(kind, " ")
    lines = text.removesuffix("\n").split("\n")
    header = kind in ("csv", "jmeter", *requests.WITH_HEADER) or name == "sacct-header.txt"
    return TextLog(kind, lines[:header], [line.split(separator) for line in lines[header:]], separator, header=header)


def _packed(content: bytes, rng: random.Random) -> tuple[str, bytes] | None:
    """Gzip and other encodings; a text that is not UTF-8 has only some of them."""
    ways = PACKINGS if rng.random() < 0.6 else WRECKS
    name = rng.choice(list(ways))
    if rng.random() < 0.6 or not content or (name == "gzip bomb" and rng.random() < 0.8):
        return None
    try:
        return name, ways[name](content, rng)
    except UnicodeError:
        return None


def _parquet(seed: int, rng: random.Random) -> Case:
    content, rows = parquet(rng, rng.choice((0, 1, 5, 30)))
    damage: tuple[str, ...] = ()
    known: int | None = rows
    if rng.random() < 0.4:
        name = rng.choice(list(BYTES))
        data = bytearray(content)
        BYTES[name](data, rng)
        content, damage, known = bytes(data), (name,), None
    return Case(seed, "parquet", damage, _log_arguments(rng, None), content, "parquet", known)


def _log_arguments(rng: random.Random, known: str | None) -> tuple[str, ...]:
    """A command that reads the log; the slow ones seldom."""
    law = rng.choice(("lognormal", "weibull", "exponential", "gamma", "pareto", "truncated-gaussian"))
    commands = {
        (AGREE, LOG): 25,
        ("convert", LOG, "-o", OUTPUT + rng.choice((".csv", ".jsonl", ".parquet"))): 30,
        ("timeout", LOG, "--resamples", rng.choice(("0", "9"))): 10,
        ("timeout", LOG, "--law", law, "--resamples", "0"): 6,
        ("outliers", LOG): 2,
        ("fit", LOG, "--law", law, "--bootstrap", "0"): 4,
        ("fit", LOG, "--law", law, "--method", "ls", "--bootstrap", "3"): 2,
        ("analyze", LOG, "--resamples", rng.choice(("0", "9")), "--by", rng.choice(("site", "status"))): 2,
        ("replay", LOG, "--at", rng.choice(("1", "100", "1e6"))): 1.5,
        ("drift", LOG, "--window", rng.choice(("1m", "1h", "7d"))): 0.7,
        ("verify", LOG, LOG): 0.7,
        ("compare", LOG): 0.3,
        ("watch", LOG, "--cutoff", rng.choice(("100", "1e5"))): 2,
        ("batch", LOG, "-o", OUTPUT + ".csv", "--workers", "1", "--resamples", "0", "--no-test", "--by", "site"): 5,
        ("plot", LOG, "-o", OUTPUT + ".png"): 0.1,
    }
    chosen = rng.choices(list(commands), list(commands.values()))[0]
    allowed = ("--max-refused", "1") if rng.random() < 0.8 else ()
    told = ("--format", known) if known else ()
    if known == "pattern":
        told = ("--pattern", rng.choice(PATTERNS), *(told if rng.random() < 0.1 else ()))
    as_json = () if chosen[0] in ("batch", "plot", AGREE) or rng.random() < 0.1 else ("--json",)
    return (*chosen, *allowed, *told, *as_json)


def _law_arguments(rng: random.Random) -> tuple[str, ...]:
    """A law with damaged parameters, or a damaged text."""
    spec = _law(rng)
    if rng.random() < 0.1:
        return ("agents", "--agent", f"a={spec}", "--agent", f"b={_law(rng)}", "--json")
    extra = [option for option in TIMEOUT if rng.random() < 0.15]
    return ("timeout", "--law", spec, *(word for option in extra for word in (option, _value(option, rng))), "--json")


def _law(rng: random.Random) -> str:
    name = rng.choice([name for name in law_names() if name != "empirical"])
    spec = rng.choice(get_law(name).examples)
    if rng.random() < 0.5:  # other numbers
        for _ in range(rng.choice((1, 1, 2))):
            numbers = [at for at, c in enumerate(spec) if c in "=[," and spec[at + 1 : at + 2].isdigit()]
            if numbers:
                at = rng.choice(numbers) + 1
                end = next((i for i in range(at, len(spec)) if spec[i] in ",])"), len(spec))
                spec = spec[:at] + rng.choice(PARAMETERS) + spec[end:]
        return spec
    for _ in range(rng.choice((0, 1, 1, 3))):
        at = rng.randint(0, len(spec))
        some = (nasty(rng), rng.choice("()[]=,-.\n\t "), "__import__('os').system('id')", "(" * 999, "[" * 999,
                "=" * 99, "lambda: 0", "mu", "rate", "1" * 5000, "," * 50_000, " " * 50_000)  # fmt: skip
        spec = spec[:at] + rng.choice(some) + spec[at + rng.choice((0, 0, 1, 9)) :]
    return spec.replace("\0", "")


LOG_OPTIONS = {
    "--format": (*sorted(FORMATS), "CSV", "xml"),
    "--pattern": (*PATTERNS, "(", "(?P<latency>", "no groups", r"(?P<latency>\d*)", "(?P<status>.)(?P<status>.)"),
    "--column": ("latency=latency", "latency=", "latency=latency+latency", "latency=id", "id=", "status=site",
                 "status=", "submitted=latency", "ended=submitted", "latency", "=x", "latency=+", "nope=x",
                 "id=latency"),
    "--status": ("completed=lost", "lost=completed", "completed=", "lost=,,,", "failed=completed,failed", "x=y", "="),
    "--unit": ("s", "ms", "us", "ns", "min", "h", "days", "S"),
    "--time-format": ("iso", "epoch", "epoch-ms", "epoch-us", "epoch-ns", "%Y", "%Q", "%", "%Y-%m-%dT%H:%M:%SZ",
                      "mixed", "ISO8601", "%d%d%d", "%s"),
    "--timezone": ("UTC", "Europe/Paris", "Mars/Olympus", "../../etc/passwd", "America", "UTC+99", "/etc/localtime",
                   "."),
    "--year": ("2026", "1970", "9999", "0"),
    "--max-refused": ("0", "1", "0.5", "2"),
}  # fmt: skip
TIMEOUT = {
    "--rho": ("0", "0.1", "0.999999", "1", "1e-320", "-0.1", "1e-17"),
    "--cost": ("0", "5", "1e300", "1e-300", "1e308"),
    "--wall-clock": ("0", "10", "1e300", "1e308"),
    "--restarts": ("1", "3", "50", "0", "99999999999999999999"),
    "--copies": ("1", "2", "1000", "1000000000", "99999999999999999999"),
    "--max-submissions": ("1", "1.5", "1e300", "0.5", "1e-300"),
    "--objective": ("mean", "std", "moment:3", "moment:20", "quantile:0.95", "quantile:1e-300",
                    "quantile:0.999999999999", "deadline:100", "deadline:1e308", "deadline:1e-300", "moment:1e9",
                    "quantile:", "deadline:inf", "mean:1"),
    "--at": ("0", "100", "1e308", "1e-320", "1e-5"),
}  # fmt: skip
SHARED = {"--cutoff": ("100", "1e-320", "1e308", "1e5", "0"), "--failed": ("retry", "completed", "lost", "Retry")}
GROUPING = {"--by": ("site", "status", "latency", "site,site", "file", ",", "nope", "site,window", "submitted"),
            "--cost": TIMEOUT["--cost"]}  # fmt: skip
OPTIONS = {
    ("timeout", LOG): {**LOG_OPTIONS, **SHARED, **TIMEOUT,
                       "--law": ("lognormal", "empirical", "nope", "pareto", "uniform")},
    ("convert", LOG, "-o", OUTPUT + ".csv"): LOG_OPTIONS,
    ("fit", LOG, "--bootstrap", "0"): {**LOG_OPTIONS, **SHARED, "--law": ("lognormal", "weibull", "nope", "empirical"),
                                      "--rho": TIMEOUT["--rho"], "--method": ("ls", "mle", "MLE"),
                                      "--subsample": ("1", "3", "99999999999999999999")},
    ("outliers", LOG): {**LOG_OPTIONS, **SHARED},
    ("analyze", LOG, "--resamples", "0"): {**LOG_OPTIONS, **SHARED, **GROUPING, "--current": ("1", "1e308", "1e-320"),
                                          "--law": ("lognormal", "nope"), "--seed": ("0", "99999999999999999999999")},
    ("batch", LOG, "-o", OUTPUT + ".csv", "--workers", "1", "--resamples", "0", "--no-test"): {
        **LOG_OPTIONS, **SHARED, **GROUPING,
        "--window": ("1d", "1h", "7w", "1s", "0d", "99999999999999999999d", "106752d", "1.5h", "1 d", "-1d", "١d",
                     "1y")},
    ("laws",): {"--json": ("", "x")},
    ("formats",): {"--json": ("", "x")},
    ("{nasty}",): {},
}  # fmt: skip
WEIGHTS = (30, 20, 2, 1, 0.7, 10, 0.3, 0.3, 0.3)


def _value(option: str, rng: random.Random) -> str:
    """A value that the option may well have, or a nasty one."""
    plain = next(given[option] for given in (TIMEOUT, *OPTIONS.values()) if option in given)
    return rng.choice(plain) if rng.random() < 0.7 else nasty(rng).replace("\0", "")


def _options(seed: int, rng: random.Random) -> Case:
    command = rng.choices(list(OPTIONS), WEIGHTS)[0]
    known = OPTIONS[command]
    chosen = rng.sample(list(known), min(len(known), rng.choice((1, 1, 2, 3))))
    arguments = [nasty(rng).replace("\0", "") if word == "{nasty}" else word for word in command]
    for option in chosen:
        value = (
            rng.choice(known[option])
            if rng.random() < 0.7
            else rng.choice((*NUMBERS, *TEXTS, *TIMES)).replace("\0", "")
        )
        arguments += [option, value] if option != "--json" else ["--json", *([value] if value else [])]
    if command[0] in ("timeout", "fit", "outliers", "analyze"):
        arguments.append("--json")
    path = rng.choice((*FIXTURES, EGEE))
    content = b"\n".join(path.read_bytes().split(b"\n")[:200]) + b"\n"
    return Case(seed, "options", (path.name,), tuple(arguments), content)
