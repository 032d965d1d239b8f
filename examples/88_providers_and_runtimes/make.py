"""A network that several runtimes run."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
with onnxsmith.build("net.onnx", opset=20) as g:
    x = g.input("x", "float32", ["batch", 8])
    g.output("y", g.Softmax(g.Relu(x @ rng.normal(size=(8, 8)).astype(np.float32))))
