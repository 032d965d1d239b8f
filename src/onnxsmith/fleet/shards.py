"""Reads which part of the cells a machine computes."""

from __future__ import annotations

import re

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several


def read(text: str) -> tuple[int, int] | None:
    """Reads `3/20` as the third of twenty parts; "" is None.

    Raises:
        OnnxsmithError: `fleet/plan` for another text.
    """
    if not text:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None:
        raise problem(
            "fleet/plan",
            f"{text!r} is not a part of the cells",
            why="--shard needs two numbers: which part, and how many parts there are",
            fix="write --shard 1/4 for the first of four parts",
        )
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        parts = f"valid parts are 1/{count} to {count}/{count}" if count else "there has to be at least one part: 1/1"
        raise problem(
            "fleet/plan",
            f"there is no part {number} of {count}",
            why=f"--shard {text.strip()} requests part {number}, but the cells are divided into "
            f"{several(count, 'part')}; {parts}",
            fix=f"write --shard 1/{count or 1} on the first machine, and the next numbers on the other machines",
        )
    return number, count
