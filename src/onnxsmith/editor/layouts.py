"""Reads a layout, `NHWC` or `0,2,3,1`, as a permutation of axes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onnxsmith.base.problem import OnnxsmithError, problem

_USUAL = {3: "NWC", 4: "NHWC", 5: "NDHWC"}
"""Maps ranks to channels-last layouts, as TensorFlow and oneDNN name them."""


def permutation(layout: str | Sequence[int], rank: int, where: str) -> tuple[int, ...]:
    """Returns the axes in their new order, as in numpy.transpose: new axis i is old axis `permutation[i]`.

    A layout in letters implies the old layout, which has C at the other end of the spatial axes: `NHWC` replaces
    `NCHW`, `NCHW` replaces `NHWC`, `HWC` replaces `CHW`.

    Raises:
        OnnxsmithError: `edit/layout` if the layout does not fit the rank, has no usual counterpart, or changes nothing.
    """
    if isinstance(layout, str) and not re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", layout):
        axes = _of_letters(layout.strip().upper(), rank, where)
    else:
        axes = tuple(int(one) for one in (layout.split(",") if isinstance(layout, str) else layout))
        if sorted(axes) != list(range(rank)):
            raise _refusal(f"{list(axes)} is no order of {rank} axes", where, "each axis is named once, from 0", rank)
    if axes == tuple(range(rank)):
        raise _refusal("the layout changes nothing", where, "the axes stay in their order", rank)
    return axes


def _of_letters(layout: str, rank: int, where: str) -> tuple[int, ...]:
    if not layout.isalpha() or len(set(layout)) != len(layout):
        raise _refusal(
            f"{layout!r} is no layout", where, "a layout is one letter for each axis, or a permutation", rank
        )
    if len(layout) != rank:
        raise _refusal(
            f"{layout} names {len(layout)} axes, the tensor has {rank}", where, "each axis needs one letter", rank
        )
    batch, rest = ("N", layout[1:]) if layout[0] == "N" else ("", layout)
    if rest.endswith("C"):
        before = f"{batch}C{rest[:-1]}"
    elif rest.startswith("C"):
        before = f"{batch}{rest[1:]}C"
    else:
        why = "letters say where the channels are: C is the last axis, or the first one behind N"
        raise _refusal(f"what the axes of {layout} were before is not known", where, why, rank)
    return tuple(before.index(letter) for letter in layout)


def _refusal(what: str, where: str, why: str, rank: int) -> OnnxsmithError:
    # Rank 2 has one other order; ranks 0 and 1 have none.
    usual = _USUAL.get(rank)
    axes = ",".join(map(str, (0, *range(2, rank), 1) if rank > 2 else range(rank - 1, -1, -1)))
    if rank < 2:
        return problem("edit/layout", what, where=where, why=f"{why}; a tensor of rank {rank} has one layout only")
    return problem(
        "edit/layout", what, where=where, why=why, fix=f"write {usual}, or {axes}" if usual else f"write {axes}"
    )
