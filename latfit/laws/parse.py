"""Laws by name, and laws as text: `lognormal(mu=5.5,sigma=1)`."""

from __future__ import annotations

import re
from typing import Any

from latfit.errors import LawError, hint
from latfit.laws.base import REGISTRY, Law, ParametricLaw

# neighbouring parts match different characters, so that a long run of spaces does not take quadratic time
_CALL = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:\((.*)\))?", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=(\s*\[[^\[\]]*\]\s*|[^,\[\]=]+)(,|$)")


def law_names() -> list[str]:
    """The names of all laws, in alphabetical order."""
    return sorted(REGISTRY)


def get_law(name: str) -> type[Law]:
    """The law of that name."""
    if name in REGISTRY:
        return REGISTRY[name]
    if "(" in name:
        example = name.split("(")[0].strip()
        raise LawError(f"{name!r} has parameters; a name of a law is needed here, such as {example!r}")
    raise LawError(f"there is no law {name!r}{hint(name, REGISTRY)} (known: {', '.join(law_names())})")


def parse_law(text: str, **params: Any) -> ParametricLaw:
    """The law written as `text`, such as `lognormal(mu=5.5,sigma=1)`; lists are in brackets.

    Parameters
    ----------
    text
        The name of one of `latfit laws`, with its parameters in parentheses or without.
    params
        The parameters, if `text` is a name only.

    Returns
    -------
    ParametricLaw
        A frozen value. An unknown name or parameter is a `LawError` that lists the known ones.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.parse_law("lognormal(mu=5.5,sigma=1)")
    >>> round(law.mean(), 1), law.sigma
    (403.4, 1.0)
    >>> latfit.parse_law("lognormal", mu=5.5, sigma=1) == law
    True
    """
    call = _CALL.fullmatch(str(text).rstrip())
    if call is None:
        raise LawError(
            f"{text!r} is not a law: write it as lognormal(mu=5.5,sigma=1); a file is read with latfit.read_log"
        )
    name, inside = call.groups()
    law = get_law(name)
    if not issubclass(law, ParametricLaw):
        raise LawError(f"the {name} law comes from a log; it cannot be written as text")
    names = [parameter.name for parameter in law.parameters]
    shape = f"{name}({','.join(f'{p.name}=[…]' if p.many else f'{p.name}=…' for p in law.parameters)})"
    if inside is None and not params:
        raise LawError(f"{text!r} has no parameters: write {shape}")
    values = {**parse_call(text, shape)[1], **params}
    for argument in values:
        if argument not in names:
            raise LawError(f"{name} has no parameter {argument!r}{hint(argument, names)} (write {shape})")
    missing = [p for p in names if p not in values]
    if missing:
        raise LawError(f"{name} lacks {' and '.join(missing)}: write {shape}")
    return law(**values)


def parse_call(text: str, example: str) -> tuple[str, dict[str, Any]]:
    """The name and the arguments of any text in the form of a law, such as `hedge(d=300,t_inf=900)`."""
    call = _CALL.fullmatch(text.rstrip())
    if call is None:
        raise LawError(f"{text!r} cannot be read: write it like {example}")
    name, inside = call[1], (call[2] or "").rstrip()
    values: dict[str, Any] = {}
    at = 0
    while at < len(inside):
        match = _ARGUMENT.match(inside, at)
        if match is None:
            where = f"{inside[at:].strip()!r} at position {call.start(2) + at + 1} of {text!r}"
            raise LawError(f"cannot read {where}: write {example}")
        argument, value, _ = match.groups()
        if argument in values:
            raise LawError(f"{argument} is given twice in {text!r}")
        items = []
        for item in value.strip().strip("[]").split(","):
            try:
                items.append(float(item))
            except ValueError:
                raise LawError(f"{argument} is {item.strip()!r} in {text!r}; it must be a number") from None
        values[argument] = items if value.strip().startswith("[") else items[0]
        at = match.end()
    return name, values
