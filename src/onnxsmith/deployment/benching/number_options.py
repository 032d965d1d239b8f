"""Reads numbers from the command line."""

from __future__ import annotations

from onnxsmith.base.problem import problem


def counts(text: str, example: str) -> tuple[int, ...]:
    """Reads whole numbers above 0 from a text such as `1,4,16`.

    Raises:
        OnnxsmithError: `input/syntax`.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and int(word) for word in words):
        raise problem("input/syntax", f"{text!r} is not a list of numbers above 0", fix=f"write {example}")
    return tuple(int(word) for word in words)


def share(text: str, example: str) -> float:
    """Reads a share from a text such as `5%` or `0.05`.

    Raises:
        OnnxsmithError: `input/syntax`.
    """
    try:
        found = float(text.strip().removesuffix("%")) / (100 if "%" in text else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise problem("input/syntax", f"{text!r} is not a share", fix=f"write {example}")
    return found
