"""Makes the message of a model with onnx-ir, in a form that onnx and the runtimes accept."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from onnxsmith.graph.structure import name_validation


def of_model(model: ir.Model) -> onnx.ModelProto:
    """Returns the message of a model, without the parts that onnx-ir cannot hold (see `carried_fields`).

    onnx-ir does not write outputs without a name at the end of a node's outputs. For a call of a local function they
    are written: onnx's inference and onnxruntime refuse a call with fewer outputs than the function has.
    """
    proto = ir.to_proto(model)
    counts = {(one.domain, one.name, one.overload): len(one.output) for one in proto.functions}
    for node in name_validation.all_nodes(proto) if counts else ():
        missing = counts.get((node.domain, node.op_type, node.overload), 0) - len(node.output)
        node.output.extend([""] * missing)
    return proto
