"""Writes numbers the way that all report parts do."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.report.base import Table

_UNITS = ("B", "KB", "MB", "GB", "TB")


def size(count: int) -> str:
    """Bytes in units of 1000: `10 B`, `1.5 KB`, `2.30 GB`."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:  # from 999.5 on, three digits round to 1000
        value, unit = value / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def number(value: float | None) -> str:
    """A statistic: an integer in full, a float with six digits, "" for None."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def amount(count: int, one: str, many: str = "") -> str:
    """`1 node`, `2 nodes`, `1,024 nodes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def dims(shape: tuple[int, ...]) -> str:
    """`[2, 3]`; `[]` for a scalar."""
    return f"[{', '.join(str(dim) for dim in shape)}]"


def metadata(props: dict[str, str]) -> Iterator[Table]:
    """A table of metadata, if there is any."""
    if props:
        yield Table(("metadata", "value"), tuple(props.items()))
