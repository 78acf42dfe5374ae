"""What a user writes on the command line, damaged: durations, conditions, policies, objectives, targets, settings."""

import json
import random
import re
from collections.abc import Callable

import numpy as np

from fuzzing.mutate import NUMBERS, TEXTS, TIMES, nasty
from latfit.errors import LatfitError
from latfit.logs.formats import Condition
from latfit.measure.targets import Attempt
from latfit.measure.targets.command import Command
from latfit.measure.targets.http import Http
from latfit.restart.objectives import Objective
from latfit.restart.policies import REGISTRY as POLICIES
from latfit.restart.policies import parse_policy
from latfit.settings import TOOLS
from latfit.units import UNITS, parse_duration

SECRET = "s3cr3tT0ken"
DURATIONS = ("358", "350ms", "6m", "1h30m", "1m 20s", "00:04:32", "PT4M32S", "2d", "1e3", ".5s", "1-00:04:32", "7w")
CONDITIONS = ("site=ce1", "method!=GET", "url~^/api/", "a=", "a!=", "x~", "=b", "latency=1", "a~[a-z]+")
OBJECTIVES = ("mean", "std", "moment:3", "quantile:0.95", "deadline:600", "quantile:1e-9", "moment:20")
URLS = ("http://127.0.0.1:9/x", "https://h.example/a?b=c#d", "http://[::1]:8080/", "http://h/{job}/{attempt}?t={probe}")


def _damaged(text: str, rng: random.Random) -> str:
    """Some characters of a text taken out, put in or changed for something nasty."""
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice((nasty(rng)[:50], rng.choice("()[]=,:-+.eE%~!# \t/@{}"), "9" * 30, "")) + (
            text[at + rng.choice((0, 0, 1, 3)) :])  # fmt: skip
    return text.replace("\0", "")


def _policy(rng: random.Random) -> str:
    spec = rng.choice([kind.example for kind in POLICIES.values()])
    if rng.random() < 0.6:
        return re.sub(r"\d+\.?\d*", lambda found: rng.choice((found[0], found[0], "0", "1e9", "1e-9", "-1", "1e308",
                                                              "1e-320", "nan", "3", "50")), spec)  # fmt: skip
    return _damaged(spec, rng)


def _url(rng: random.Random) -> str:
    """A URL with credentials in it: none of them may be shown."""
    scheme, _, rest = rng.choice(URLS).partition("://")
    url = f"{scheme}://user:{SECRET}@{rest}" if rng.random() < 0.5 else f"{scheme}://{rest}"
    url += f"{'&' if '?' in url else '?'}token={SECRET}" if rng.random() < 0.7 else f"#{SECRET}"
    at = rng.randint(0, len(url))
    broken = rng.choice(("", "", nasty(rng)[:30], ":99999", "[", "]", "\\", " ", "\n", "@", "%", "//"))
    return (url[:at] + broken + url[at:]).replace("\0", "") if SECRET not in url[max(0, at - 10) : at + 10] else url


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "duration": lambda rng: _damaged(rng.choice((*DURATIONS, *NUMBERS, *TIMES)), rng),
    "where": lambda rng: _damaged(rng.choice(CONDITIONS), rng),
    "policy": _policy,
    "objective": lambda rng: _damaged(rng.choice(OBJECTIVES), rng),
    "url": _url,
    "command": lambda rng: _damaged(rng.choice(("echo {job}", "ssh node hostname", "a 'b c' d", "x --y={probe}")), rng),
}


def arguments(kind: str, text: str, rng: random.Random) -> tuple[str, ...]:
    """A command that meets the text; nothing is submitted."""
    law = ("--law", "lognormal(mu=1,sigma=1)", "--rho", rng.choice(("0", "0.1")))
    if kind == "duration":
        tool = rng.choice(sorted(TOOLS))
        settings = ("settings", tool, "--timeout", text, "--attempts", "3", "--json")
        option = rng.choice(("--cost", "--at"))
        return settings if rng.random() < 0.4 else ("timeout", *law, option, text, "--json")
    if kind == "policy" and rng.random() < 0.2:  # a comparison takes a second
        return ("compare", *law, "--policy", text, "--json")
    if kind == "objective":
        command = rng.choices(("timeout", "compare"), (20, 1))[0]
        return (command, *law, "--objective", text, "--json")
    if kind == "url":
        rate = rng.choice(("2/s", "30/min", "0", "1/", "/s", "1e999", "nan", "1/0", "-1"))
        method = rng.choice(("GET", nasty(rng)[:9].strip("\0")))
        return ("probe", "http", "--dry-run", "--rate", rate, "--method", method, "--", text)
    if kind == "command":
        share = rng.choice(("5%", "0.05", "0", "100%", "1e", "%", "5 %", "."))
        return ("probe", "command", "--dry-run", "--until-precise", share, "--", *text.split(" "))
    return ("formats", "--json")


def wrong(kind: str, text: str) -> list[str]:
    """What is wrong with how a text is understood; that it is refused in one line is right."""
    try:
        return CHECKS[kind](text)
    except LatfitError as error:
        told = [] if "\n" not in str(error) else [f"more than one line: {error}"]
        return told + ([f"the secret is told: {error}"] if SECRET in str(error) else [])


def _duration(text: str) -> list[str]:
    found = parse_duration(text)
    plain = re.fullmatch(r"(\d{1,15})(ms|s|h|d|min|w)?", text, re.ASCII)
    if plain and not np.isclose(found, int(plain[1]) * UNITS[plain[2] or "s"], rtol=1e-12):
        return [f"{text!r} is read as {found}"]
    return [] if 0 <= found < float("inf") else [f"{text!r} is read as {found}"]


def _where(text: str) -> list[str]:
    found = Condition.parse(text)
    plain = [text for text in TEXTS if not re.search("[\ud800-\udfff]", text)]  # readers replace halves of characters
    cells = [*plain, None, "", "ce1", "GET", "/api/x"]
    holds = [found.is_met(cell) for cell in cells]
    if found.operator == "~" or not found.value:
        return []
    other = Condition(found.column, "!=" if found.operator == "=" else "=", found.value)
    return (
        [f"{text!r} and its opposite overlap"]
        if any(holds[at] == other.is_met(cell) for at, cell in enumerate(cells))
        else []
    )


def _policy_round(text: str) -> list[str]:
    policy = parse_policy(text)
    return [] if parse_policy(policy.spec()) == policy else [f"{text} is written as {policy.spec()}"]


def _objective(text: str) -> list[str]:
    found = Objective.parse(text)
    return [] if str(Objective.parse(str(found))) == str(found) else [f"{text!r} is written as {found}"]


def _http(text: str) -> list[str]:
    public = json.dumps(Http(text).public())
    return [f"the log would hold {public}"] if SECRET in public else []


def _command(text: str) -> list[str]:
    words = tuple(text.split(" "))
    target = Command(words)
    filled = [Attempt("r", 1, 2, 3).fill(word) for word in words]
    public = target.public()
    return [] if len(filled) == len(words) and set(public) == {"program", "cancel"} else [f"{words} → {public}"]


CHECKS: dict[str, Callable[[str], list[str]]] = {
    "duration": _duration, "where": _where, "policy": _policy_round, "objective": _objective, "url": _http,
    "command": _command,
}  # fmt: skip
