"""Einsum: letters say which axes are one."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator

Axis = tuple[ir.Value, int]


class Einsum(Operator):
    """A letter that one stored operand and the result have begins channels; one that is summed over a stored operand
    ends them. A letter that is summed over computed operands only stays, as in MatMul."""

    ops = ("Einsum",)

    def link(self, node: ir.Node, links: Links) -> None:
        operands = [value for value in node.inputs if value is not None]
        y = node.outputs[0]
        letters = _letters(node.attributes["equation"].as_string(), [rank(value) or 0 for value in operands], rank(y))
        if letters is None:
            return
        *given, result = letters
        for letter in dict.fromkeys("".join(given)):
            axes = [(value, text.index(letter)) for value, text in zip(operands, given, strict=True) if letter in text]
            self._follow(links, axes, (y, result.index(letter)) if letter in result else None)

    def _follow(self, links: Links, axes: list[Axis], y: Axis | None) -> None:
        """Ties the axes of one letter."""
        size = max(static(*one) or 0 for one in axes)
        wide = [one for one in axes if static(*one) != 1 or size == 1]
        stored = [one for one in wide if is_weight(one[0])]
        computed = [one for one in wide if not is_weight(one[0])]
        living = [one for one in computed if links.is_live(*one)]
        if y is not None and stored and not computed and static(*y) is not None:
            links.open(*y)
        elif len(living) < len(computed):
            for one in living:
                links.pin(*one, f"{links.label} combines it with a tensor whose size is fixed")
            return
        elif not living:
            return
        if y is None and not stored:
            for one in living:
                links.pin(*one, f"{links.label} sums over it in a product of two computed tensors")
            return
        first, *others = [*([] if y is None else [y]), *living, *stored]
        for one in others:
            links.tie(*one, *first) if links.is_live(*one) else links.tie(*first, *one)
        if y is None:
            for one in stored:
                links.sums(*living[0], *one)


def _letters(equation: str, ranks: list[int], rank_of_y: int | None) -> list[str] | None:
    """The letters of each operand, then those of the result; None if an operand has a letter twice, or if they do not
    fit. The axes of an ellipsis have letters of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        once = sorted(letter for letter in set(left) - set(",.") if left.count(letter) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    if len(terms) != len(ranks) or rank_of_y is None:
        return None
    found = list(_expanded([*terms, right], [*ranks, rank_of_y]))
    fits = all(len(text) == count for text, count in zip(found, [*ranks, rank_of_y], strict=True))
    return found if fits and all(len(set(text)) == len(text) for text in found) else None


def _expanded(terms: list[str], ranks: list[int]) -> Iterator[str]:
    for text, count in zip(terms, ranks, strict=True):
        before, dots, after = text.partition("...")
        more = max(0, count - len(before) - len(after))
        yield before + "".join(chr(_OWN + more - at) for at in range(more)) + after if dots else text


_OWN = 0xE000
"""The first character of a private area of Unicode: letters for the axes of an ellipsis, counted from the last."""
