"""A check as users write them: python own_check.py MODEL [INPUTS]. Status 3 where the model fails.

Without inputs it fails when an Erf flows into a GlobalAveragePool. With them it fails when onnxruntime's outputs are
finite although a NaN arose on the way.
"""

from __future__ import annotations

import sys

import onnx


def flows(model: onnx.ModelProto, first: str, second: str) -> bool:
    reached: set[str] = set()
    for node in model.graph.node:
        if node.op_type == second and reached & set(node.input):
            return True
        if node.op_type == first or reached & set(node.input):
            reached |= set(node.output)
    return False


def loses_nan(model: onnx.ModelProto, inputs: str) -> bool:
    import numpy as np
    import onnxruntime

    roots = [node.output[0] for node in model.graph.node if node.op_type == "Sqrt"]
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in roots if name not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, dict(np.load(inputs))), strict=True))
    return any(np.isnan(found[name]).any() for name in roots) and any(
        np.isfinite(found[name]).all() for name in known - set(roots)
    )


def main() -> int:
    model = onnx.load(sys.argv[1])
    fails = loses_nan(model, sys.argv[2]) if len(sys.argv) > 2 else flows(model, "Erf", "GlobalAveragePool")
    return 3 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
