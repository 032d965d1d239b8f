"""Decides how much constant folding may enlarge a file."""

from __future__ import annotations

import math

from onnxsmith.base.problem import problem

_SHARE = 0.01
"""The share by which every file may grow. A choice: room for names of new values, and for small constants."""
_BYTES = 1 << 20
"""The bytes by which a small file may grow by default. A choice: fewer nodes are worth a megabyte."""
_MOST = 1 << 62
"""More bytes than a file has."""
_TIMES = 3
"""By default, no small file grows by more than this many times its size. A choice."""


def checked(share: float | None) -> None:
    """Raises if the share is not a number of at least 0.

    Raises: OnnxsmithError: `simplify/max-growth` for a share below 0, infinity or NaN.
    """
    if share is not None and not (share >= 0 and math.isfinite(share)):
        raise problem(
            "simplify/max-growth",
            f"a file cannot grow by the share {share}",
            fix="write 0 for a file that does not grow, 0.5 for half of its size",
        )


def foldable(nbytes: int, share: float | None) -> int:
    """Returns the bytes by which folding may enlarge a model of `nbytes`: the requested `share`. With None 1% or, if
    that is more, 1 MiB, but at most three times the size."""
    if share is not None:
        return int(min(share * nbytes, _MOST))
    return max(int(_SHARE * nbytes), min(_BYTES, _TIMES * nbytes))


def largest(nbytes: int, share: float | None) -> float:
    """Returns the largest size of the new file if the old file has `nbytes`: with what folding may add, and names of
    new values."""
    return nbytes + foldable(nbytes, share) + _SHARE * nbytes


def note(added: int, denied: int, nodes: int, nbytes: int, least: int) -> list[str]:
    """Returns notes on the `added` bytes of a model of about `nbytes` and at least `least` bytes, and on the number of
    `nodes` that were not folded, because they would add `denied` bytes."""
    notes = []
    if added > _SHARE * nbytes:
        notes.append(
            f"folded constants made the weights {added:,} bytes larger; --max-growth 0 keeps the nodes instead"
        )
    if denied and nodes:
        share = _ceiling((added + denied) / max(1, least))
        notes.append(
            f"{nodes} nodes of constants were not folded, because this would make the weights {denied:,} bytes larger; "
            f"--max-growth {share:g} folds these nodes"
        )
    return notes


def _ceiling(share: float) -> float:
    """Returns a slightly larger share with two digits."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1) if share > 0 else 1.0
    return math.ceil(share * 1.02 / unit) * unit  # 2% above: the sizes are estimates
