"""What an HTTP status code says of a request: one table, for every reader that has codes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.formats import ReadOptions
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.table import STATUSES

# codes that do not follow their class; whoever gave up, the answer was still out then
CODES = {
    "408": "censored",  # request timeout
    "425": "failed",  # too early: come again
    "429": "failed",  # too many requests: come again
    "444": "failed",  # nginx closed the connection without an answer
    "460": "censored",  # AWS: the client closed the connection first
    "499": "censored",  # nginx: the client closed the connection first
    "504": "censored",  # gateway timeout
    "522": "censored",  # Cloudflare: no connection in time
    "524": "censored",  # Cloudflare: no answer in time
    "598": "censored",  # read timeout, by convention of proxies
    "599": "censored",  # connect timeout, by convention of proxies
}
# 4xx are answers of the server: sending the same again brings the same
CLASSES = {"1": "completed", "2": "completed", "3": "completed", "4": "completed", "5": "failed"}
NO_ANSWER = ("0", "000", "-", "-1", "")  # refused, reset, unknown host: known at once, so failed
CODE = re.compile(r"([1-5])(?:\d\d|xx)(?:\.0+)?", re.ASCII)
CHANGE = "; change it with --status, for example --status failed=4xx"


def http_outcome(code: str, said: Mapping[str, str] | None = None) -> str | None:
    """The outcome of a request that was answered with `code`, such as 200 or 5xx; None if it is no HTTP code.

    `said` maps codes (`404`) and classes (`4xx`), in lower case, to outcomes by the user's word; a code
    goes before its class, and both before the table.

    >>> http_outcome("200"), http_outcome("504"), http_outcome("404", {"4xx": "failed"}), http_outcome("soon")
    ('completed', 'censored', 'failed', None)
    """
    said = said or {}
    word = code.strip().lower()
    match = CODE.fullmatch(word)
    if match is None:
        return said.get(word) or ("failed" if word in NO_ANSWER else None)
    plain = word.split(".", 1)[0]
    return said.get(plain) or said.get(f"{match[1]}xx") or CODES.get(plain) or CLASSES[match[1]]


class HttpOutcomes(OutcomeTally):
    """The outcomes of a log's HTTP codes, by the table and the user's word, with the counts of each."""

    def __init__(self, options: ReadOptions, what: str = "outcomes by HTTP code") -> None:
        super().__init__(what, change=CHANGE, answers=True)
        self.said = options.lowered_statuses

    def statuses(self, codes: pd.Series[str], records: Records) -> NDArray[np.int8]:
        """The status of each row; rows without a code that can be read are refused."""
        words = codes.astype("string").fillna("-").astype("category")
        known = [http_outcome(str(word), self.said) for word in words.cat.categories]
        table = np.array([UNKNOWN if status is None else STATUSES.index(status) for status in known], dtype=np.int8)
        found = table[words.cat.codes.to_numpy()] if len(words) else np.empty(0, dtype=np.int8)
        hint = "say what it means: --status completed|failed|censored|lost=CODE"
        records.refuse(found == UNKNOWN, lambda row: f"unknown HTTP code: {str(words.iloc[row])[:40]!r}; {hint}")
        return np.asarray(found)

    def said_of(self, codes: pd.Series[str]) -> NDArray[np.bool_]:
        """Which codes, or their classes, the user has given an outcome."""
        words = codes.astype("string").str.strip().str.lower()
        classes = words.str.replace(r"^(\d)\d\d$", r"\1xx", regex=True)
        return (words.isin(list(self.said)) | classes.isin(list(self.said))).to_numpy(dtype=bool, na_value=False)
