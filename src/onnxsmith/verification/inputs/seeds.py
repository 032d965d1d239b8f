"""Refuses seeds from which nothing can be drawn."""

from __future__ import annotations

from onnxsmith.base.problem import problem


def refuse_negative(seed: int) -> None:
    """Raises for a seed below 0, which numpy's generators do not take.

    Raises:
        OnnxsmithError: `input/seed`.
    """
    if seed < 0:
        raise problem("input/seed", f"a seed of {seed} is not usable", fix="give a whole number from 0: --seed 0")
