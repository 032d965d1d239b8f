"""A convolution and a mean, in NCHW."""

import numpy as np

import onnxsmith

with onnxsmith.build("nchw.onnx", opset=21) as g:
    x = g.input("image", "float32", ["batch", 3, "height", "width"])
    y = g.Conv(x, np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32), pads=[1] * 4)
    g.output("features", g.Relu(y))
