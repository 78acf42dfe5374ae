"""Valid Parquet logs, and damage to their columns."""

import io
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet

VALUES = (
    0.0, -0.0, 1e308, -1e308, 1e-320, float("nan"), float("inf"), -1.0, 5e17, None, "7", "x", "", "\u202e", True, 2**63,
    10**25, b"\xff", Decimal("1.5"), [1], {"a": 1},
)  # fmt: skip


def parquet(rng: random.Random, n: int) -> tuple[bytes, int]:
    """A file and its number of rows; some columns hold what they should not."""
    columns: dict[str, list[object]] = {
        "id": list(range(n)),
        "submitted": [1_767_225_600 + 10 * i for i in range(n)],
        "latency": [round(rng.lognormvariate(5, 1), 1) for _ in range(n)],
        "status": [rng.choice(("completed", "completed", "failed", "lost")) for _ in range(n)],
        "site": [rng.choice("ab") for _ in range(n)],
    }
    for name in rng.sample(list(columns), rng.randrange(3)):
        value = rng.choice(VALUES)
        columns[name] = [value if rng.random() < 0.5 else old for old in columns[name]]
        if rng.random() < 0.3:
            columns[name] = [value] * n
    if rng.random() < 0.2:
        del columns[rng.choice(list(columns))]
    arrays = {name: _array(values) for name, values in columns.items()}
    if rng.random() < 0.3:
        name = rng.choice(list(arrays))
        arrays[name] = _cast(arrays[name], rng)
    table = pa.table(arrays)
    out = io.BytesIO()
    pa.parquet.write_table(table, out, row_group_size=rng.choice((3, 1000)))
    return out.getvalue(), n


def _array(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _cast(array: pa.Array, rng: random.Random) -> pa.Array:
    kinds = (
        pa.float32(), pa.int8(), pa.uint64(), pa.timestamp("ns"), pa.timestamp("s", tz="Europe/Paris"), pa.string(),
        pa.duration("ms"), pa.time64("us"), pa.date32(), pa.bool_(), pa.large_string(), pa.binary(), pa.null(),
        pa.decimal128(30, 5), pa.dictionary(pa.int8(), pa.string()), pa.float16(), pa.list_(pa.int64()),
    )  # fmt: skip
    try:
        return array.cast(rng.choice(kinds))
    except pa.ArrowException:
        return array
