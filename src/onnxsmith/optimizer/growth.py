"""How much larger a file may become when constants are folded."""

from __future__ import annotations

import math

from onnxsmith.base.problem import problem

_SHARE = 0.01
"""Share by which any file may grow. A choice: room for names of new values, and for small constants."""
_BYTES = 1 << 20
"""Bytes by which a small file may grow, if nobody says otherwise. A choice: fewer nodes are worth a megabyte."""
_TIMES = 3
"""But no file grows by more than this many times its size, unasked. A choice."""


def checked(share: float | None) -> None:
    """Refuses what is no share.

    Raises:
        OnnxsmithError: `simplify/max-growth` for a share below 0, or one that is no number.
    """
    if share is not None and not (share >= 0 and math.isfinite(share)):
        raise problem(
            "simplify/max-growth",
            f"a file cannot grow by the share {share}",
            fix="write 0 for a file that does not grow, 0.5 for half of its size",
        )


def foldable(nbytes: int, share: float | None) -> int:
    """Returns the bytes by which folding may enlarge a model of `nbytes`: the `share` that was asked for; with None 1%
    or 1 MiB, whichever is more, and at most three times the size."""
    if share is not None:
        return int(share * nbytes)
    return max(int(_SHARE * nbytes), min(_BYTES, _TIMES * nbytes))


def largest(nbytes: int, share: float | None) -> float:
    """Returns the bytes that the new file of a file of `nbytes` may have: what folding may add, and names of new
    values."""
    return nbytes + foldable(nbytes, share) + _SHARE * nbytes


def note(added: int, denied: int, nodes: int, nbytes: int, least: int) -> list[str]:
    """What folding added to a model of about `nbytes` (`least` at least), and what it left as `nodes`, because they
    would add `denied` bytes."""
    notes = []
    if added > _SHARE * nbytes:
        notes.append(f"folded constants made the weights {added:,} bytes larger; --max-growth 0 leaves them as nodes")
    if denied and nodes:
        share = _ceiling((added + denied) / max(1, least))
        notes.append(
            f"nodes of constants that stay: {nodes}; folded they would make the weights {denied:,} bytes larger; "
            f"--max-growth {share:g} folds them"
        )
    return notes


def _ceiling(share: float) -> float:
    """Returns the share, a little above, with two digits."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1) if share > 0 else 1.0
    return math.ceil(share * 1.02 / unit) * unit  # 2% above: the sizes are estimates
