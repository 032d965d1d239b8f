"""Formats numbers in the same way for all report parts."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.base import Table


def duration(seconds: float | None) -> str:
    """Formats a time with three digits: `12.3 us`, `4.56 ms`, `2.00 s`; "" for None."""
    if seconds is None:
        return ""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 0.9995:
            return _digits(seconds * factor) + f" {unit}"
    return _digits(seconds * 1e6) + " us"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def number(value: float | None) -> str:
    """Returns a statistic as text: an integer in full, a float with six digits, "" for None."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def dims(shape: tuple[int, ...]) -> str:
    """Formats a shape: `[2, 3]`; `[]` for a scalar."""
    return f"[{', '.join(str(dim) for dim in shape)}]"


def metadata(props: dict[str, str]) -> Iterator[Table]:
    """Yields a table of metadata; nothing if there is none."""
    if props:
        yield Table(("metadata", "value"), tuple(props.items()))
