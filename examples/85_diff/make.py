"""Two versions of a network, built by different hands: other names, one attribute, one weight and one node differ."""

import numpy as np

import onnxsmith

rng = np.random.default_rng(0)
weight, head = rng.normal(size=(4, 3, 3, 3)).astype(np.float32), rng.normal(size=(4, 10)).astype(np.float32)
with onnxsmith.build("old.onnx", opset=20) as g:
    x = g.input("image", "float32", ["n", 3, 8, 8])
    y = g.LeakyRelu(g.Conv(x, weight, pads=[1] * 4), alpha=0.01)
    g.output("scores", g.ReduceMean(y, axes=[2, 3], keepdims=0) @ head)
head[1, 1] += 0.5
with onnxsmith.build("new.onnx", opset=20) as g:
    x = g.input("image", "float32", ["n", 3, 8, 8])
    with g.scope("backbone"):
        y = g.LeakyRelu(g.Conv(x, weight, pads=[1] * 4), alpha=0.02)
    g.output("scores", g.Softmax(g.ReduceMean(y, axes=[2, 3], keepdims=0) @ head))
