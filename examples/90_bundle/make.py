"""Writes colour.onnx: it says of a picture of 32x32 how red, green and blue it is."""

import numpy as np

import onnxsmith

WEIGHTS = np.array([[4, -2, -2], [-2, 4, -2], [-2, -2, 4]], np.float32)

with onnxsmith.build("colour.onnx", opset=20) as g:
    pixels = g.input("pixels", "float32", ["batch", 3, 32, 32])
    means = g.ReduceMean(pixels, axes=[2, 3], keepdims=0)
    g.output("scores", g.MatMul(means, WEIGHTS))
