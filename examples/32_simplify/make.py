"""A graph as exporters leave it: a chain of Shape for a reshape, a normalisation in pieces, what cancels out."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
with onnxsmith.build("raw.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 6, 4])
    batch = g.Unsqueeze(g.Gather(g.Shape(x), 0), [0])
    flat = g.Reshape(x, g.Concat(batch, [24], axis=0))
    y = g.MatMul(flat, rng.normal(size=(24, 16)).astype(np.float32)) + rng.normal(size=16).astype(np.float32)
    y = g.Transpose(g.Transpose(y, perm=[1, 0]), perm=[1, 0])
    centred = y - g.ReduceMean(y, axes=[-1])
    y = centred / g.Sqrt(g.ReduceMean(centred * centred, axes=[-1]) + 1e-5)
    y = y * rng.normal(size=16).astype(np.float32) + rng.normal(size=16).astype(np.float32)
    g.output("y", g.Min(g.Max(y, 0.0), 6.0))
print(g.result.report.headline)
