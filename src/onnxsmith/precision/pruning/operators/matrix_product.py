"""MatMul: with stored matrices on either side, or of two computed tensors."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator


class MatrixProduct(Operator):
    """With a stored matrix, its columns (or rows, on the left) begin channels; with a stack of matrices, [experts, in,
    out], the same ones of all.

    Of two computed tensors the axes before the last two pass: attention heads. An axis that is summed over stays: no
    weight of the product could be zero to show that the channel is not read.
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
        """`weight` is the operand, with the axis that is summed over and the other one."""
        if static(*y) is None:
            return
        matrix, summed, other = weight
        if links.is_live(*x):
            links.tie(*x, matrix, summed)
            links.sums(*x, matrix, summed)
        links.open(*y)
        links.tie(matrix, other, *y)

    def _stacked(self, links: Links, x: ir.Value, weight: ir.Value, y: ir.Value) -> None:
        """Axes before the last two, which broadcast: those of the weight go with those of the other operand."""
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
                links.pin(value, summed, "it is summed over in a product of two computed tensors")
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
                    links.pin(*one, "it is multiplied with a tensor whose size is fixed")
