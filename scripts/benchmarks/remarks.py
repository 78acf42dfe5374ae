"""Why a target was missed and what would close the gap, by the key of the row; shown only while it is missed."""

REMARKS: dict[str, str] = {}
