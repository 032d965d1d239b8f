"""A network whose middle overflows float16: squares of numbers around 1000 are summed."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
with onnxsmith.build("net.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 16])
    y = g.Relu(x @ rng.normal(size=(16, 16)).astype(np.float32)) * 1000.0
    size = g.Sqrt(g.ReduceSum(y * y, axes=[-1]) + 1.0)
    g.output("y", g.Relu((y / size) @ rng.normal(size=(16, 4)).astype(np.float32)))
