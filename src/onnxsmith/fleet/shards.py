"""Reads which part of the cells a machine computes."""

from __future__ import annotations

import re

from onnxsmith.base.problem import problem


def read(text: str) -> tuple[int, int] | None:
    """Reads `3/20` as the third of twenty parts; "" is None.

    Raises:
        OnnxsmithError: `fleet/plan` for another text.
    """
    if not text:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise problem(
            "fleet/plan",
            f"{text!r} is no part of the cells",
            why="the first number is the part, from 1 to the number of parts",
            fix="write --shard 1/4 for the first of four parts",
        )
    return int(match[1]), int(match[2])
