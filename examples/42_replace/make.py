"""A limit made of Min and Max, and a layer normalisation in pieces, with its trained scale and bias."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
with onnxsmith.build("pieces.onnx", opset=16) as g:
    x = g.input("x", "float32", ["batch", 8])
    x = g.Max(g.Min(x, 6.0), 0.0)
    centred = x - g.ReduceMean(x, axes=[-1])
    y = centred / g.Sqrt(g.ReduceMean(g.Pow(centred, 2.0), axes=[-1]) + 1e-5)
    y = y * g.weight("scale", rng.normal(size=8).astype(np.float32)) + g.weight(
        "bias", rng.normal(size=8).astype(np.float32)
    )
    g.output("y", y)
