"""Counts the multiply-accumulates of a model's outline: those of the main graph, by the rules of `mac_rules/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from onnxsmith.base.report.parts.model_summary import Macs, MacTerm
from onnxsmith.graph.reading.scopes import Scope
from onnxsmith.graph.structure.walk import op_name
from onnxsmith.viewer.inspection.costs.zero_mac_operators import without_products
from onnxsmith.viewer.inspection.mac_rules.base import Products, rule_of


def macs(nodes: Iterable[tuple[Scope, ir.Node]], functions: Iterable[ir.OperatorIdentifier] = ()) -> Macs:
    """Counts the multiply-accumulates of one run of a graph, from its nodes with inferred shapes.

    Symbolic sizes stay symbols. Calls of local `functions` are not operators without a rule.
    """
    terms: Counter[tuple[str, ...]] = Counter()
    other: Counter[str] = Counter()
    counted = unknown = nested = 0
    local = set(functions)
    for scope, node in nodes:
        rule = rule_of(node)
        if rule is None:
            if not without_products(node) and node.op_identifier() not in local:
                other[op_name(node)] += 1
        elif scope.path:
            nested += 1
        elif (products := rule.products(node)) is None:
            unknown += 1
        else:
            counted += 1
            _add(terms, products)
    ordered = sorted(terms.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
    return Macs(tuple(MacTerm(n, dims) for dims, n in ordered), counted, unknown, nested, dict(sorted(other.items())))


def _add(terms: Counter[tuple[str, ...]], products: Products) -> None:
    for product in products:
        number = 1
        for dim in product:
            number *= dim if isinstance(dim, int) else 1
        terms[tuple(sorted(dim for dim in product if isinstance(dim, str)))] += number
