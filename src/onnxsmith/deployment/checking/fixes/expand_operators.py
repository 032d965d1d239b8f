"""Replaces refused operators by the bodies that the ONNX specification gives them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.expansion import expand
from onnxsmith.graph.surgery.node_insertion import Inserter


class ExpandOperators(Fix):
    """Operators such as LayerNormalization, Gelu or CenterCropPad are written with others."""

    rank = 20

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        version = opset_conversion.of(model)
        made = inferred(model)[0]
        names = Names(made)
        done: set[str] = set()
        for node in list(walk.nodes(made.graph)):
            if node.domain in ("", "ai.onnx") and node.op_type in refused and node.graph is not None:
                write = Inserter(node, "written_out_", version, names.free)
                found = expand(node, version, version, write)
                if isinstance(found, str) or found[1] > version:
                    continue
                new = found[0]
                provenance.inherit(new, [node])
                for one in new:
                    one.name = names.free(f"{node.name}_{one.op_type}") if node.name else None
                done.add(node.op_type)
        if done:
            yield f"{', '.join(sorted(done))} written out with the operators of the specification", made
