"""Lines of free text, in which a regular expression of the user's finds the probes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import ROLES, Format, ReadOptions, register, regular_expression
from latfit.logs.jsonlines import Parsed, read_objects
from latfit.logs.lines import MAX_CHARACTERS
from latfit.logs.records import Records
from latfit.logs.source import Block, Source


@register
class Pattern(Format):
    """One line a probe, wherever in it the pattern is found; its named groups are the columns.

    A group that takes no part in the match is an empty cell.
    """

    name = "pattern"
    description = "lines of free text: --pattern 'task (?P<id>\\d+) took (?P<latency>\\S+)'"
    rank = 999
    roles = ROLES
    uses = ("pattern", "statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Never: nobody but the user knows the pattern."""
        return False

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by the names of groups; lines without a match are left out, and counted."""
        if options.pattern is None:
            raise LogError(f"{source.name}: say how a probe looks in its lines, with --pattern REGEX")
        pattern, skipped = regular_expression(options.pattern), [0]

        def parse(block: Block) -> Parsed:
            rows, numbers = [], []
            broken: dict[int, str] = {}
            for number, line in enumerate(block.lines(), start=block.first_line):
                if not line.strip():
                    continue
                if len(line) > MAX_CHARACTERS:
                    broken[number] = "line too long"
                elif (match := pattern.search(line)) is not None:
                    rows.append(match.groupdict())
                    numbers.append(number)
                else:
                    skipped[0] += 1
            return pd.DataFrame(rows, dtype="str"), np.array(numbers, dtype=np.int64), broken

        none = f"no line matches --pattern {options.pattern!r}"
        yield from read_objects(map(parse, source.blocks()), source.name, options, nothing=none)
        left = Records.unusable({})
        if skipped[0]:
            left.skipped["lines without a match of --pattern"] = skipped[0]
        yield left
