"""Heroku's router log."""

from __future__ import annotations

import re

from latfit.logs.formats import register
from latfit.logs.rows import Row, RowFormat, epoch, plain_path, sent_at

ROUTER = "heroku[router]: "
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:\d\d)?")
FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S*))')
TIMEOUTS = ("H12", "H15", "H28")  # request timeout, idle connection, client connection idle


@register
class Heroku(RowFormat):
    """Latency is connect + service, in ms. H12 is the router's timeout (censored); other H codes failed."""

    name = "heroku"
    description = "Heroku router log; latency = connect + service"
    rank = 24
    unit = "ms"

    def row(self, line: str) -> Row | None:
        """`… heroku[router]: at=info method=GET path="/" … dyno=web.1 connect=1ms service=12ms status=200 bytes=5`."""
        prefix, router, rest = line.partition(ROUTER)
        if not router:
            return None
        moment = TIME.search(prefix)
        fields = {key: quoted or plain for key, quoted, plain in FIELD.findall(rest)}
        parts = [fields.get(name, "").removesuffix("ms") for name in ("connect", "service")]
        if not parts[1].isdigit():
            return None
        latency, error = sum(int(part) for part in parts if part.isdigit()), fields.get("code")
        status = fields.get("status") if error is None else "timeout" if error in TIMEOUTS else "failed"
        if error == "H27":  # the client gave up
            status = "cancelled"
        submitted = sent_at(epoch(moment[0] if moment else None), latency / 1e3)
        groups = {name: fields.get(name) for name in ("method", "host", "dyno", "bytes")}
        known = {"latency": latency, "submitted": submitted, "status": status, "code": error}
        return {**known, "path": plain_path(fields.get("path")), **groups}
