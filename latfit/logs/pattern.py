"""Lines of free text, in which a regular expression of the user's finds the probes."""

from __future__ import annotations

from collections.abc import Iterator

from latfit.errors import LogError
from latfit.logs.formats import ROLES, Format, ReadOptions, register, regular_expression
from latfit.logs.jsonlines import read_found
from latfit.logs.records import Records
from latfit.logs.source import Source


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
        pattern = regular_expression(options.pattern)

        def find(line: str) -> dict[str, str | None] | None:
            match = pattern.search(line)
            return None if match is None else match.groupdict()

        none = f"no line matches --pattern {options.pattern!r}"
        yield from read_found(source, options, find, "lines without a match of --pattern", nothing=none)
