"""A layer normalisation and a GELU, a sampling and a mean, each in opset 20."""

import numpy as np

import onnxsmith

with onnxsmith.build("net20.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 16])
    g.output("y", g.Gelu(g.LayerNormalization(x, np.ones(16, np.float32))))
with onnxsmith.build("grid20.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 3, 8, 8])
    g.output("y", g.GridSample(x, g.input("grid", "float32", ["batch", 4, 4, 2])))
with onnxsmith.build("pool20.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 3, 8, 8])
    g.output("y", g.ReduceMean(x, axes=[2, 3], keepdims=0))
