"""Follows channels through products with stored weights, which begin and end channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Cuts, Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand


class Convolution(Operator):
    """Conv: output channels begin, input channels end. In a depthwise Conv, output channels follow the input channels.

    The weight is [out, in / groups, …].

    With several groups, each group loses channels at the same positions, because the weight has one axis of input
    channels for all groups. A depthwise Conv has a group for each input channel, and whole groups are removed.
    """

    ops = ("Conv",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias)) and static(y, 1) is not None):
            return
        assert x is not None
        assert weight is not None
        groups, outputs, inputs = integer(node, "group", 1), static(weight, 0) or 0, static(weight, 1) or 0
        if groups > 1 and inputs == 1:
            if links.is_live(x, 1):
                links.tie(x, 1, weight, 0, np.repeat(np.arange(groups), outputs // groups))
                links.tie(weight, 0, y, 1)
                _follow(links, bias, y)
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 1, None, np.tile(np.arange(inputs), groups))
            links.sums(x, 1, weight, 1)
        links.open(y, 1)
        links.tie(weight, 0, y, 1)
        if groups > 1:
            links.tie(y, 1, y, 1, None, np.tile(np.arange(outputs // groups), groups))
        _follow(links, bias, y)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept = cuts.of(node.inputs[0], 1)
        if integer(node, "group", 1) > 1 and static(node.inputs[1], 1) == 1 and kept is not None:
            node.attributes["group"] = ir.AttrInt64("group", len(kept))


def _follow(links: Links, bias: ir.Value | None, y: ir.Value) -> None:
    if bias is not None:
        links.tie(y, 1, bias, 0)


class TransposedConvolution(Operator):
    """ConvTranspose: like Conv, with the axes of the weight exchanged.

    The weight is [in, out / groups, …], so that all groups keep output channels at the same positions.
    """

    ops = ("ConvTranspose",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias)) and static(y, 1) is not None):
            return
        assert x is not None
        assert weight is not None
        groups, inputs, outputs = integer(node, "group", 1), static(weight, 0) or 0, static(weight, 1) or 0
        if groups > 1 and inputs == groups:
            if links.is_live(x, 1):
                links.tie(x, 1, weight, 0)
                links.tie(weight, 0, y, 1, np.repeat(np.arange(groups), outputs))
                if bias is not None:
                    links.tie(y, 1, bias, 0)
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 0)
            links.tie(weight, 0, weight, 0, None, np.tile(np.arange(inputs // groups), groups))
            links.sums(x, 1, weight, 0)
        links.open(y, 1)
        links.tie(weight, 1, y, 1, np.tile(np.arange(outputs), groups))
        if bias is not None:
            links.tie(y, 1, bias, 0)

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept, groups = cuts.of(node.inputs[0], 1), integer(node, "group", 1)
        if groups > 1 and static(node.inputs[1], 0) == groups and kept is not None:
            node.attributes["group"] = ir.AttrInt64("group", len(kept))


class Gemm(Operator):
    """Gemm: columns of the result begin channels, columns of the first operand end them.

    The weight is the second operand, [in, out], or [out, in] with `transB`.
    """

    ops = ("Gemm",)

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, bias, y = node.inputs[0], node.inputs[1], operand(node, 2), node.outputs[0]
        if not (is_weight(weight) and (bias is None or is_weight(bias))) or integer(node, "transA", 0):
            return
        assert x is not None
        assert weight is not None
        outer = 0 if integer(node, "transB", 0) else 1
        size = static(weight, outer)
        columns = None if bias is None else rank(bias)
        if static(y, 1) != size or (bias is not None and columns == 2 and static(bias, 0) != 1):
            return
        if links.is_live(x, 1):
            links.tie(x, 1, weight, 1 - outer)
            links.sums(x, 1, weight, 1 - outer)
        links.open(y, 1)
        links.tie(weight, outer, y, 1)
        if bias is not None and columns and static(bias, columns - 1) == size and size != 1:
            links.tie(y, 1, bias, columns - 1)


class MatrixProduct(Operator):
    """MatMul: with a stored matrix on either side, or of two computed tensors.

    The columns of a stored matrix (its rows, if it stands on the left) begin channels. In a stack of matrices,
    [experts, in, out], all matrices lose the same channels.

    With two computed tensors, channels pass along the axes before the last two, such as attention heads. A summed axis
    stays, because the proof sets weights to zero and such a product has none.
    """

    ops = ("MatMul",)

    def link(self, node: ir.Node, links: Links) -> None:
        a, b, y = node.inputs[0], node.inputs[1], node.outputs[0]
        ranks = rank(a), rank(b)
        assert a is not None
        assert b is not None
        if None in ranks or min(ranks[0] or 0, ranks[1] or 0) < 2:
            return
        m, n, k = ranks[0] or 0, ranks[1] or 0, rank(y) or 0
        if is_weight(b):
            self._constant(links, (a, m - 1), (b, n - 2, n - 1), (y, k - 1))
            if links.is_live(a, m - 2):
                links.tie(a, m - 2, y, k - 2)
            self._stacked(links, a, b, y)
        elif is_weight(a):
            self._constant(links, (b, n - 2), (a, m - 1, m - 2), (y, k - 2))
            if links.is_live(b, n - 1):
                links.tie(b, n - 1, y, k - 1)
            self._stacked(links, b, a, y)
        elif not is_weight(a) and not is_weight(b):
            self._computed(links, a, b, y)

    def _constant(
        self, links: Links, x: tuple[ir.Value, int], weight: tuple[ir.Value, int, int], y: tuple[ir.Value, int]
    ) -> None:
        """Links a product with one stored matrix. `weight` has the operand, its summed axis and its other axis."""
        if static(*y) is None:
            return
        matrix, summed, other = weight
        if links.is_live(*x):
            links.tie(*x, matrix, summed)
            links.sums(*x, matrix, summed)
        links.open(*y)
        links.tie(matrix, other, *y)

    def _stacked(self, links: Links, x: ir.Value, weight: ir.Value, y: ir.Value) -> None:
        """Ties the broadcast axes before the last two of the weight with those of the other operand."""
        k = rank(y) or 0
        for back in range(3, k + 1):
            at, place = (rank(x) or 0) - back, (rank(weight) or 0) - back
            if not links.is_live(x, at) or at < 0:
                continue
            if place >= 0 and static(weight, place) != 1:
                if static(weight, place) != static(x, at):
                    links.pin(x, at, f"{links.label} repeats it")
                    continue
                links.tie(x, at, weight, place)
            links.tie(x, at, y, k - back)

    def _computed(self, links: Links, a: ir.Value, b: ir.Value, y: ir.Value) -> None:
        m, n, k = rank(a) or 0, rank(b) or 0, rank(y) or 0
        for value, count, summed in ((a, m, m - 1), (b, n, n - 2)):
            if links.is_live(value, summed):
                links.pin(value, summed, "a product of two computed tensors sums over the channels")
            passing = count - 2 if value is a else count - 1
            at = k - 2 if value is a else k - 1
            if links.is_live(value, passing):
                links.tie(value, passing, y, at)
        for back in range(3, k + 1):  # axes before the last two, which broadcast
            sides = [(value, count - back) for value, count in ((a, m), (b, n)) if count - back >= 0]
            wide = [one for one in sides if static(*one) != 1]
            living = [one for one in wide if links.is_live(*one)]
            for one in living:
                links.tie(*one, y, k - back)
                if len(living) < len(wide):
                    links.pin(*one, "the channels are multiplied with a tensor whose size is fixed")


Axis = tuple[ir.Value, int]


class Einsum(Operator):
    """Einsum: axes with the same letter belong together.

    A letter in one stored operand and in the result begins channels. A summed letter of a stored operand ends channels.
    A summed letter of computed operands only stays, as in MatMul.
    """

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
                links.pin(*one, f"{links.label} combines the channels with a tensor whose size is fixed")
            return
        elif not living:
            return
        if y is None and not stored:
            for one in living:
                links.pin(*one, f"{links.label} sums over the channels in a product of two computed tensors")
            return
        first, *others = [*([] if y is None else [y]), *living, *stored]
        for one in others:
            links.tie(*one, *first) if links.is_live(*one) else links.tie(*first, *one)
        if y is None:
            for one in stored:
                links.sums(*living[0], *one)


def _letters(equation: str, ranks: list[int], rank_of_y: int | None) -> list[str] | None:
    """Returns the letters of each operand, then those of the result. None if an operand has a letter twice, or if
    letters and axes do not match. The axes of an ellipsis get letters of their own."""
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
"""The first character of a private area of Unicode, used as letters for the axes of an ellipsis, counted from the last
axis."""
