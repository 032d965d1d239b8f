"""Two linear layers."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
with onnxsmith.build("net.onnx", opset=22) as g:
    x = g.input("x", "float32", ["batch", 64])
    x = g.Relu(x @ g.weight("first", rng.normal(size=(64, 64)).astype(np.float32) / 8))
    g.output("y", x @ g.weight("second", rng.normal(size=(64, 8)).astype(np.float32) / 8))
