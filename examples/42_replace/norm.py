"""Raises the opset, and replaces the pieces of a normalisation by one operator."""

import onnxsmith

with onnxsmith.edit("clip.onnx", "norm.onnx") as m:
    m.opset(17)
    m.replace(
        """
        d = Sub(x, ReduceMean <axes = [-1]> (x))
        y = Add(Mul(Div(d, Sqrt(Add(ReduceMean <axes = [-1]> (Pow(d, 2.0)), 1e-5))), c_scale), c_bias)
        """,
        "LayerNormalization <axis = -1, epsilon = 1e-5> (x, c_scale, c_bias)",
    )
print(m.result.report.headline)
