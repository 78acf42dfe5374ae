"""What the prose of the page says in numbers: ranges of coverage, read off the tables that it stands above."""

from __future__ import annotations

import re
from collections.abc import Callable

from calibration.cases import Row

Chosen = Callable[[Row, str], bool]
SHARE = re.compile(r"\d+(?:\.\d+)?")
PARETO = "pareto"


def _column(name: str) -> Chosen:
    """A column, without the cases that are marked as impossible; a best timeout that is (†) has no share."""
    return lambda row, column: column == name and "‡" not in row.case.get("", "")


def _errors(columns: tuple[str, ...], pareto: bool) -> Chosen:
    return lambda row, column: column in columns and (PARETO in row.case["law"]) == pareto


LATER = ("n = 200", "n = 2000")
CLAIMS: dict[str, tuple[str, Chosen]] = {
    "counted": ("counted", lambda row, column: True),
    "joint small": ("joint", lambda row, column: column == "n = 50"),
    "joint later": ("joint", lambda row, column: column != "n = 50"),
    "chosen": ("joint-chosen", _column("covered")),
    "errors small": ("standard-errors", _errors(("n = 50",), False)),
    "errors later": ("standard-errors", _errors(LATER, False)),
    "plain small": ("standard-errors", _errors(("plain, n = 50",), False)),
    "errors pareto": ("standard-errors", _errors(("n = 50", "n = 200"), True)),
    "plain pareto": ("standard-errors", _errors(("plain, n = 50", "plain, n = 200"), True)),
    "profile": ("profile", lambda row, column: PARETO not in row.case["law"]),
    "profile pareto": ("profile", lambda row, column: PARETO in row.case["law"]),
    "least squares": ("ls-errors", lambda row, column: True),
    "timeout": ("timeout", _column("timeout")),
    "E_J": ("timeout", _column("E_J")),
    "speed-up": ("timeout", _column("speed-up")),
    "scattered timeout": ("scattered", _column("timeout")),
    "scattered E_J": ("scattered", _column("E_J")),
    "scattered speed-up": ("scattered", _column("speed-up")),
}  # fmt: skip


def claims(rows: list[Row]) -> dict[str, str]:
    """`{{range NAME}}` of the page: the least and the largest share of the cells that NAME chooses, in %."""
    found = {}
    for name, (table, chosen) in CLAIMS.items():
        cells = [row.cells[column] for row in rows if row.table == table for column in row.cells if chosen(row, column)]
        shares = [float(share[0]) for cell in cells if (share := SHARE.search(cell))]
        found[f"range {name}"] = f"{min(shares):.0f} to {max(shares):.0f} %" if shares else "–"
    return found
